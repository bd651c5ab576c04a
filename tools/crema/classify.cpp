// crema classify: the likeliest classes of picture files, prepared as the net was trained.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "commands.h"
#include "feed/augmentation.h"
#include "feed/picture_resizing.h"
#include "feed/transform.h"
#include "io/image.h"
#include "io/weights.h"
#include "label_names.h"
#include "net/deploy.h"

DEFINE_int32(top, 5, "classify: how many classes of each picture are shown");
DEFINE_int32(batch, 16, "classify: pictures that run at once");

namespace crema {
namespace {

namespace fs = std::filesystem;

/// Files as they are; of folders all files below them, sorted.
std::vector<std::string> picture_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    require(fs::exists(path), path, ": there is no such file or folder");
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) found.push_back(entry.path().string());
    }
    require(!found.empty(), path, ": holds no files");
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

LayerParameter& input_layer(NetParameter& net) {
  for (LayerParameter& layer : *net.mutable_layer()) {
    if (layer.type() == "Input" && layer.input_param().shape_size() > 0) return layer;
  }
  fail(FLAGS_model, ": has no Input layer with a shape");
}

class Classifier {
 public:
  Classifier() : deploy_(derive_deploy(read_model(TEST), FLAGS_model)) {
    for (const std::string& note : deploy_.notes) LOG(WARNING) << note;
    LayerParameter& input = input_layer(deploy_.net);
    BlobShape& shape = *input.mutable_input_param()->mutable_shape(0);
    require(shape.dim_size() == 4, FLAGS_model, ": input \"", input.top(0), "\" has ",
            shape.dim_size(), " axes; pictures need 4 (N, C, H, W)");
    require(FLAGS_batch > 0, "--batch must be above 0, not ", FLAGS_batch);
    shape.set_dim(0, FLAGS_batch);
    blob_ = input.top(0);
    channels_ = static_cast<int>(shape.dim(1));
    height_ = static_cast<int>(shape.dim(2));
    width_ = static_cast<int>(shape.dim(3));
    resize_height_ = static_cast<int>(input.image_data_param().new_height());
    resize_width_ = static_cast<int>(input.image_data_param().new_width());
    transform_ = without_chance(input.transform_param());
    resizes_ = transform_.has_resize_param() || has_random_size(transform_);
    if (resize_height_ == 0 && !resizes_) {  // not known: straight to what the net takes
      transform_.clear_crop_size();
      transform_.clear_crop_h();
      transform_.clear_crop_w();
      resize_height_ = height_;
      resize_width_ = width_;
    }
    NetOptions options = net_options();
    options.log = false;
    const WeightsFile weights = read_weights(FLAGS_weights);
    net_ = std::make_unique<Net>(deploy_.net, options, make_ops(chosen_device()));
    net_->load_weights(weights, FLAGS_weights);
    net_->params_changed();
    require(net_->outputs().size() == 1, FLAGS_model, ": has ", net_->outputs().size(),
            " outputs; classify takes nets with one");
    if (deploy_.preprocessing) source_ = deploy_.preprocessing->source;
    names_ = label_names(source_);
  }

  /// Prints the classes of each file; returns how many files could not be read.
  size_t run(const std::vector<std::string>& files) {
    const auto batch = static_cast<size_t>(FLAGS_batch);
    size_t broken = 0;
    for (size_t first = 0; first < files.size(); first += batch) {
      const size_t end = std::min(files.size(), first + batch);
      broken += run_batch(
          {files.begin() + static_cast<int64_t>(first), files.begin() + static_cast<int64_t>(end)});
    }
    return broken;
  }

 private:
  size_t run_batch(const std::vector<std::string>& files) {
    const Transformer transformer(transform_, TEST, 0);
    const Augmentation augmentation(transform_, 0);
    const auto size =
        static_cast<size_t>(channels_) * static_cast<size_t>(height_) * static_cast<size_t>(width_);
    std::vector<float> values(static_cast<size_t>(FLAGS_batch) * size);
    std::vector<std::string> read;
    for (const std::string& file : files) {
      try {
        prepare(augmentation, transformer, file, values.data() + read.size() * size);
        read.push_back(file);
      } catch (const Error& error) {
        const std::string text = error.what();
        LOG(ERROR) << (text.rfind(file, 0) == 0 ? text : file + ": " + text);
      }
    }
    net_->set_blob(blob_, values);
    net_->forward();
    const std::vector<float> scores = net_->output_values().at(0);
    const size_t classes = scores.size() / static_cast<size_t>(FLAGS_batch);
    for (size_t i = 0; i < read.size(); ++i) show(read[i], scores.data() + i * classes, classes);
    return files.size() - read.size();
  }

  void prepare(const Augmentation& augmentation, const Transformer& transformer,
               const std::string& file, float* out) const {
    const ColorMode mode = channels_ == 1   ? ColorMode::gray
                           : channels_ == 3 ? ColorMode::color
                                            : ColorMode::as_stored;
    Picture picture = read_picture(file, mode);
    const bool is_sized = picture.height == resize_height_ && picture.width == resize_width_;
    if (resize_height_ > 0 && !is_sized) {
      picture = resize(picture, resize_height_, resize_width_);
    }
    const Pixels pixels = augmentation.changed(pixels_of(picture), 0, picture);
    const Shape shape = transformer.output_shape(pixels);
    require(shape == Shape({channels_, height_, width_}), file, ": becomes ", shape,
            ", the net takes ", Shape{channels_, height_, width_});
    transformer.apply(pixels, 0, out);
  }

  void show(const std::string& file, const float* scores, size_t classes) const {
    std::vector<size_t> order(classes);
    std::iota(order.begin(), order.end(), size_t{0});
    const size_t shown = std::min(classes, static_cast<size_t>(FLAGS_top));
    std::partial_sort(
        order.begin(), order.begin() + static_cast<int64_t>(shown), order.end(),
        [&](size_t a, size_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
    std::printf("%s\n", file.c_str());
    for (size_t i = 0; i < shown; ++i) {
      const size_t k = order[i];
      const std::string name = k < names_.size() ? " " + names_[k] : "";
      std::printf("  %.4f  %zu%s\n", static_cast<double>(scores[k]), k, name.c_str());
    }
  }

  DeployNet deploy_;
  std::string blob_, source_;
  int channels_ = 0, height_ = 0, width_ = 0, resize_height_ = 0, resize_width_ = 0;
  TransformationParameter transform_;
  bool resizes_ = false;  // transform_ says how a picture comes to its size
  std::unique_ptr<Net> net_;
  std::vector<std::string> names_;
};

}  // namespace

int classify_command() {
  require_flag(FLAGS_model, "classify", "model", "the net, train_val or deploy");
  require_flag(FLAGS_weights, "classify", "weights", "its weights");
  require(!arguments().empty(), "crema classify needs picture files or folders");
  require(FLAGS_top > 0, "--top must be above 0, not ", FLAGS_top);
  label_names("");  // --labels: before the long work
  const std::vector<std::string> files = picture_files(arguments());
  const size_t broken = Classifier().run(files);
  require(broken == 0, broken, " of ", files.size(), " files could not be read");
  return 0;
}

}  // namespace crema
