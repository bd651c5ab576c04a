// Works on the prototxt alone; sources are opened only to learn the size of a record.
#include "net/deploy.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "feed/augmentation.h"
#include "feed/database.h"
#include "feed/datum_pixels.h"
#include "feed/picture_resizing.h"
#include "io/mean.h"
#include "net/deploy_heads.h"
#include "net/filter.h"
#include "net/graph.h"

namespace crema {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

float loss_weight(const LayerParameter& layer) {
  if (layer.loss_weight_size() > 0) return layer.loss_weight(0);
  return ends_with(layer.type(), "Loss") ? 1.0F : 0.0F;
}

/// Layers that only report or store, those of forks (SegAccuracy, MatWrite) included.
bool is_report(const LayerParameter& layer) {
  return layer.top().empty() || ends_with(layer.type(), "Accuracy") ||
         layer.type() == "DetectionEvaluate";
}

/// Clears every filler below message: initial values are in the weights.
void clear_fillers(google::protobuf::Message* message) {
  const auto* reflection = message->GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (field->message_type()->name() == "FillerParameter") {
      reflection->ClearField(message, field);
    } else if (!field->is_repeated()) {
      clear_fillers(reflection->MutableMessage(message, field));
    }
  }
}

/// Takes out what only training reads.
void strip(LayerParameter* layer) {
  layer->clear_include();
  layer->clear_exclude();
  layer->clear_phase();
  layer->clear_loss_weight();
  layer->clear_propagate_down();
  layer->clear_blobs();
  bool shares = false;
  for (ParamSpec& spec : *layer->mutable_param()) {
    spec.clear_lr_mult();
    spec.clear_decay_mult();
    shares |= spec.has_name();
  }
  if (!shares) layer->clear_param();
  if (layer->type() != "DummyData") clear_fillers(layer);
  if (layer->type() == "PriorBox" && !layer->prior_box_param().has_clip()) {
    layer->mutable_prior_box_param()->set_clip(
        false);  // OpenCV's reader takes true where it is not
  }
}

class Deriver {
 public:
  Deriver(const NetParameter& net, std::string file, std::optional<Shape> input)
      : file_(std::move(file)), input_(std::move(input)), net_(net) {}

  DeployNet derive() {
    upgrade_and_filter(net_, file_);
    place_heads();
    prune();
    add_inputs();
    for (const LayerParameter& layer : body_) {
      *out_.net.add_layer() = layer;
      if (layer.type() != "Input") strip(out_.net.mutable_layer(out_.net.layer_size() - 1));
    }
    if (net_.has_name()) out_.net.set_name(net_.name());
    return std::move(out_);
  }

 private:
  /// Splits the layers into data layers, body and heads.
  void place_heads() {
    std::vector<LayerParameter> losses;
    float largest = 0;
    for (const LayerParameter& layer : net_.layer()) {
      if (is_data_layer(layer)) {
        data_.push_back(layer);
      } else if (loss_weight(layer) > 0 && layer.bottom_size() > 0) {
        losses.push_back(layer);
        largest = std::max(largest, loss_weight(layer));
      } else if (!is_report(layer) && !ends_with(layer.type(), "Loss")) {
        body_.push_back(layer);
      }
    }
    std::erase_if(losses, [&](const LayerParameter& loss) {
      const bool is_minor = loss_weight(loss) < largest;
      if (is_minor) {
        note(str("the head of \"", loss.name(), "\" is left out: its loss_weight ",
                 loss_weight(loss), " is below ", largest));
      }
      return is_minor;
    });
    for (const LayerParameter& loss : losses) add_head(loss, losses.size() == 1);
    if (losses.empty()) outputs_without_loss();
    require(!out_.outputs.empty(), file_, ": there is nothing that could be an output");
  }

  void add_head(const LayerParameter& loss, bool is_only) {
    if (loss.type() == "MultiBoxLoss" && loss.bottom_size() >= 3) {
      out_.outputs.push_back(unused_name("detection_out"));
      const auto head = detection_head(loss, out_.outputs.back());
      body_.insert(body_.end(), head.begin(), head.end());
      note("detection_out has the thresholds that SSD's scripts write: see to them");
      return;
    }
    const std::string wanted = is_only ? "prob" : loss.name() + "_prob";
    const std::optional<LayerParameter> head = head_of(loss, unused_name(wanted));
    const std::string output = head ? head->top(0) : prediction_of(loss);
    if (head) body_.push_back(*head);
    if (std::find(out_.outputs.begin(), out_.outputs.end(), output) == out_.outputs.end()) {
      out_.outputs.push_back(output);
    }
  }

  /// The first bottom that no data layer makes: some nets give the target first.
  std::string prediction_of(const LayerParameter& loss) const {
    for (const std::string& bottom : loss.bottom()) {
      if (std::none_of(data_.begin(), data_.end(), [&](const LayerParameter& layer) {
            return std::count(layer.top().begin(), layer.top().end(), bottom) > 0;
          })) {
        return bottom;
      }
    }
    return loss.bottom(0);
  }

  std::string unused_name(const std::string& wanted) const {
    std::set<std::string> names;
    for (const LayerParameter& layer : net_.layer()) {
      names.insert(layer.name());
      names.insert(layer.top().begin(), layer.top().end());
    }
    std::string name = wanted;
    for (int i = 2; names.count(name) > 0; ++i) name = str(wanted, i);
    return name;
  }

  /// Of a net without losses: what Accuracy reads, else what nobody reads.
  void outputs_without_loss() {
    for (const LayerParameter& layer : net_.layer()) {
      if (layer.type() == "Accuracy" && layer.bottom_size() > 0) {
        out_.outputs.push_back(layer.bottom(0));
        return;
      }
    }
    std::set<std::string> read;
    for (const LayerParameter& layer : body_) {
      for (const std::string& bottom : layer.bottom()) {
        if (std::count(layer.top().begin(), layer.top().end(), bottom) == 0) read.insert(bottom);
      }
    }
    for (const LayerParameter& layer : body_) {
      for (const std::string& top : layer.top()) {
        const bool is_known =
            std::count(out_.outputs.begin(), out_.outputs.end(), top) > 0 || read.count(top) > 0;
        if (!is_known && layer.type() != "Input") out_.outputs.push_back(top);
      }
    }
  }

  void prune() {
    needed_.insert(out_.outputs.begin(), out_.outputs.end());
    std::vector<LayerParameter> kept;
    for (size_t i = body_.size(); i-- > 0;) {
      const LayerParameter& layer = body_[i];
      const bool is_needed = std::any_of(layer.top().begin(), layer.top().end(),
                                         [&](auto& top) { return needed_.count(top) > 0; });
      if (!is_needed) continue;
      needed_.insert(layer.bottom().begin(), layer.bottom().end());
      kept.push_back(layer);
    }
    body_.assign(kept.rbegin(), kept.rend());
  }

  void add_inputs() {
    bool found = std::any_of(body_.begin(), body_.end(),
                             [](const LayerParameter& layer) { return layer.type() == "Input"; });
    for (const LayerParameter& layer : data_) {
      Shapes shapes;
      for (int i = 0; i < layer.top_size(); ++i) {
        if (needed_.count(layer.top(i)) == 0) continue;
        found = true;
        if (input_ && !out_.preprocessing) {
          shapes.resize(static_cast<size_t>(layer.top_size()), *input_);
        } else if (shapes.empty()) {
          shapes = shapes_of(layer);
        }
        add_input(layer, i, shapes.at(static_cast<size_t>(i)));
      }
    }
    const std::vector<std::string> missing = blobs_of_nobody();
    if (input_ && missing.size() == 1) {  // DIGITS' nets have no data layer in the stage deploy
      put_input(missing[0], *input_);
      return;
    }
    require(missing.empty(), file_, ": no layer of the phase and stages makes ", join(missing),
            missing.size() == 1 ? "; --input_shape=1,3,224,224 makes an input of it" : "");
    require(found, file_, ": no data layer leads to the outputs ", join(out_.outputs));
  }

  /// What layers of the body read and none before them makes.
  std::vector<std::string> blobs_of_nobody() const {
    std::set<std::string> made;
    for (const LayerParameter& layer : data_) made.insert(layer.top().begin(), layer.top().end());
    std::vector<std::string> missing;
    for (const LayerParameter& layer : body_) {
      for (const std::string& bottom : layer.bottom()) {
        if (made.insert(bottom).second) missing.push_back(bottom);
      }
      made.insert(layer.top().begin(), layer.top().end());
    }
    return missing;
  }

  LayerParameter& put_input(const std::string& blob, const Shape& shape) {
    LayerParameter& input = *out_.net.add_layer();
    input.set_name(blob);
    input.set_type("Input");
    input.add_top(blob);
    BlobShape* out = input.mutable_input_param()->add_shape();
    for (const int64_t dim : shape) out->add_dim(dim);
    return input;
  }

  void add_input(const LayerParameter& data, int top, const Shape& shape) {
    LayerParameter& input = put_input(data.top(top), shape);
    if (top > 0 || out_.preprocessing || data.type() == "HDF5Data") return;
    out_.preprocessing = preprocessing_of(data);
    const Preprocessing& made = *out_.preprocessing;
    if (data.has_transform_param() && made.transform.ByteSizeLong() > 0) {
      *input.mutable_transform_param() = made.transform;
    }
    // An Input layer ignores these; they say how large a picture is before it is cropped.
    if (made.resize_height > 0) {
      input.mutable_image_data_param()->set_new_height(made.resize_height);
      input.mutable_image_data_param()->set_new_width(made.resize_width);
    }
  }

  Preprocessing preprocessing_of(const LayerParameter& data) {
    Preprocessing made{
        .input = data.top(0), .transform = without_chance(data.transform_param()), .source = {}};
    if (data.type() == "Data") made.source = data.data_param().source();
    if (data.type() == "ImageData") {
      made.source = data.image_data_param().source();
      made.resize_height = static_cast<int>(data.image_data_param().new_height());
      made.resize_width = static_cast<int>(data.image_data_param().new_width());
    }
    if (const ResizeParameter& resize = made.transform.resize_param();
        made.transform.has_resize_param()) {
      made.resize_height = made.resize_width = 0;  // it does not matter what was there before
      if (resize.resize_mode() == ResizeParameter::WARP) {
        made.resize_height = static_cast<int>(resize.height());
        made.resize_width = static_cast<int>(resize.width());
        made.transform.clear_resize_param();
      }
      return made;
    }
    if (made.transform.img_rand_resize_lower() > 0) {
      made.resize_height = made.resize_width = 0;
      return made;
    }
    if (data.type() == "Data") {
      try {
        const auto database = open_database(made.source);
        const Record record = database->next();
        DatumView datum;
        parse_datum(record.value, datum);
        Picture picture;
        const Pixels pixels = pixels_of_datum(datum, ColorMode::as_stored, picture);
        made.resize_height = pixels.height;
        made.resize_width = pixels.width;
      } catch (const Error&) {  // said by shapes_of_data_layer where it matters
      }
    }
    if (made.resize_height == 0 && exists(made.transform.mean_file())) {
      const Shape mean = read_mean(made.transform.mean_file()).shape;  // the size before the crop
      made.resize_height = static_cast<int>(mean.dim_or_one(2));
      made.resize_width = static_cast<int>(mean.dim_or_one(3));
    }
    return made;
  }

  Shapes shapes_of(const LayerParameter& layer) {
    try {
      return shapes_of_data_layer(layer, 1, &out_.notes);
    } catch (const Error& error) {
      throw error.at(place_of(layer, file_));
    }
  }

  void note(const std::string& text) { out_.notes.push_back(text); }

  std::string file_;
  std::optional<Shape> input_;
  NetParameter net_;
  std::vector<LayerParameter> data_, body_;
  std::set<std::string> needed_;
  DeployNet out_;
};

}  // namespace

DeployNet derive_deploy(const NetParameter& net, const std::string& file,
                        const std::optional<Shape>& input) {
  return Deriver(net, file, input).derive();
}

}  // namespace crema
