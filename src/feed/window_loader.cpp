// Draws are made anew from a record's own stream wherever they are needed.
// BVLC: an empty foreground or background is divided by, a picture that cannot be read ends the
// feed, and windows beyond the picture abort.
#include "feed/window_loader.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/philox.h"
#include "base/trace.h"
#include "feed/augmentation.h"
#include "feed/picture_changes.h"
#include "feed/window_file.h"
#include "io/mean.h"

namespace crema {
namespace {

/// What is cut out of a picture (pixels, inclusive), to what size it is warped and where it lies in
/// the result.
struct Cut {
  int left = 0, top = 0, right = 0, bottom = 0;
  int height = 0, width = 0;
  int pad_top = 0, pad_left = 0, pad_right = 0;
};

/// The two sides are alike: one side of the window, widened about its middle.
struct Side {
  int first = 0, last = 0;  // within the picture
  int size = 0;             // of that part in the result
  int pad_first = 0, pad_last = 0;
};

int rounded(float v) { return static_cast<int>(std::round(v)); }

Side widened(float middle, float half, int limit, int crop) {
  Side side;
  const int first = rounded(middle - half), last = rounded(middle + half);
  const int before = std::max(0, -first), after = std::max(0, last - limit + 1);
  side.first = first + before;
  side.last = last - after;
  const float scale = static_cast<float>(crop) / static_cast<float>(last - first + 1);
  side.size = rounded(static_cast<float>(side.last - side.first + 1) * scale);
  side.pad_first = rounded(static_cast<float>(before) * scale);
  side.pad_last = rounded(static_cast<float>(after) * scale);
  return side;
}

/// Leaves room for at least one pixel.
void fit(int crop, int* pad, int* size) {
  *pad = std::clamp(*pad, 0, crop - 1);
  *size = std::clamp(*size, 1, crop - *pad);
}

class WindowLoader final : public RecordLoader {
 public:
  WindowLoader(const WindowDataParameter& param, const LoaderOptions& options)
      : param_(param),
        transform_(options.transform),
        key_(transform_key(options, "windows")),
        rank_(options.rank),
        ranks_(options.ranks) {
    check_fields();
    file_ = read_windows(param_.source());
    sort_windows();
    log(options.rank == 0);
    channels_ = file_.pictures[0].channels;
    shapes_ = crema::record_shapes(Shape{channels_, crop_, crop_}, options.tops);
    if (transform_.has_mean_file()) read_mean_file();
    require(transform_.mean_value_size() <= 1 || transform_.mean_value_size() == channels_,
            "transform_param: ", transform_.mean_value_size(), " mean_value for pictures of ",
            channels_, " channels; give 1 or ", channels_);
    if (!param_.cache_images()) return;
    for (const WindowFile::Entry& picture : file_.pictures) {
      bytes_.push_back(read_file(param_.root_folder() + picture.path));
    }
  }

  const Shapes& record_shapes() const override { return shapes_; }

  void draw(Ticket& ticket) override {
    RandomStream random = stream(ticket.position);
    ticket.index = static_cast<uint64_t>(chosen(ticket.position, random));
    ticket.record.key = file_.pictures[place(ticket.index)].path;
  }

  void load(const Ticket& ticket, Scratch& scratch, float* const* values) const override {
    RandomStream random = stream(ticket.position);
    const PictureWindow& window = file_.windows[chosen(ticket.position, random)];
    const bool is_mirrored = transform_.mirror() && random.below(2) == 1;
    decode_into(window.picture, scratch.picture);
    std::fill_n(values[0], shapes_[0].count(), 0.0f);
    write_window(window, is_mirrored, scratch.picture, values[0]);
    const bool is_foreground = window.overlap >= param_.fg_threshold();
    if (shapes_.size() > 1) *values[1] = is_foreground ? static_cast<float>(window.label) : 0;
  }

 private:
  void check_fields() {
    require(param_.has_source(), "window_data_param: source is missing");
    crop_ = static_cast<int>(transform_.crop_size());
    require(transform_.crop_size() > 0 && transform_.crop_size() <= 1u << 15,
            "transform_param: crop_size must be given: windows are warped to it");
    require(transform_.crop_h() == 0 && transform_.crop_w() == 0,
            "transform_param: crop_h and crop_w are not read by WindowData, only crop_size");
    require(int64_t{2} * param_.context_pad() < crop_, "window_data_param: context_pad ",
            param_.context_pad(), " on both sides leaves nothing of crop_size ", crop_);
    require(param_.crop_mode() == "warp" || param_.crop_mode() == "square",
            "window_data_param: crop_mode must be warp or square, not ", param_.crop_mode());
    require(param_.fg_fraction() >= 0 && param_.fg_fraction() <= 1,
            "window_data_param: fg_fraction must be in 0..1, not ", param_.fg_fraction());
    require(!transform_.has_mean_file() || transform_.mean_value_size() == 0,
            "transform_param: mean_file and mean_value exclude each other");
    require(!changes_pictures(transform_),
            "transform_param: WindowData reads scale, mirror, crop_size, mean_file and mean_value "
            "only");
  }

  void sort_windows() {
    for (size_t i = 0; i < file_.windows.size(); ++i) {
      const PictureWindow& window = file_.windows[i];
      const std::string& path = file_.pictures[static_cast<size_t>(window.picture)].path;
      if (window.overlap >= param_.fg_threshold()) {
        require(window.label > 0, param_.source(), ": a window on ", path, " has the overlap ",
                window.overlap, " and the class 0, which is the background's");
        foreground_.push_back(i);
      } else if (window.overlap < param_.bg_threshold()) {
        background_.push_back(i);
      }
    }
    const auto batch = static_cast<float>(param_.batch_size());
    foreground_count_ = static_cast<uint64_t>(batch * param_.fg_fraction());
    require(foreground_count_ == 0 || !foreground_.empty(), param_.source(),
            ": no window has an overlap of fg_threshold (", param_.fg_threshold(), ") or more");
    require(foreground_count_ == param_.batch_size() || !background_.empty(), param_.source(),
            ": no window has an overlap below bg_threshold (", param_.bg_threshold(), ")");
  }

  void log(bool is_logging) const {
    if (!is_logging) return;
    std::map<int, int> counts{{0, static_cast<int>(background_.size())}};
    for (const size_t i : foreground_) ++counts[file_.windows[i].label];
    LOG(INFO) << "Window data layer: fg_threshold " << param_.fg_threshold() << ", bg_threshold "
              << param_.bg_threshold() << ", fg_fraction " << param_.fg_fraction();
    LOG(INFO) << "Number of images: " << file_.pictures.size();
    for (const auto& [label, count] : counts) {
      LOG(INFO) << "class " << label << " has " << count << " samples";
    }
    LOG(INFO) << "Amount of context padding: " << param_.context_pad();
    LOG(INFO) << "Crop mode: " << param_.crop_mode();
  }

  void read_mean_file() {
    mean_ = read_mean(transform_.mean_file());
    const Shape& s = mean_->shape;
    const bool fits = s.axes() >= 3 && s[s.axes() - 3] == channels_ && s[s.axes() - 2] >= crop_ &&
                      s[s.axes() - 1] >= crop_;
    if (fits) return;
    fail("transform_param: ", transform_.mean_file(), " has shape ", s, ", but ", channels_,
         " channels of at least crop_size ", crop_, " are needed");
  }

  RandomStream stream(uint64_t position) const {
    return RandomStream(
        mix_key(key_, position * static_cast<uint64_t>(ranks_) + static_cast<uint64_t>(rank_)));
  }

  /// Which window stands at this position.
  size_t chosen(uint64_t position, RandomStream& random) const {
    const uint64_t batch = param_.batch_size();
    const auto& from = position % batch < batch - foreground_count_ ? background_ : foreground_;
    return from[random.below(from.size())];
  }
  size_t place(uint64_t window) const { return static_cast<size_t>(file_.windows[window].picture); }

  void decode_into(int index, Picture& out) const {
    const TraceSpan span("feed", "decode");
    const WindowFile::Entry& entry = file_.pictures[static_cast<size_t>(index)];
    const std::string path = param_.root_folder() + entry.path;
    const ColorMode mode = channels_ == 1 ? ColorMode::gray : ColorMode::color;
    if (bytes_.empty()) {
      out = read_picture(path, mode);
    } else {
      try {
        decode(bytes_[static_cast<size_t>(index)], mode, out);
      } catch (const Error& error) {
        throw error.at(path);
      }
    }
    require(out.height == entry.height && out.width == entry.width, path, ": is of height ",
            out.height, ", width ", out.width, ", but ", param_.source(), " says height ",
            entry.height, ", width ", entry.width);
  }

  Cut cut_of(const PictureWindow& w, const Picture& picture) const {
    const bool is_square = param_.crop_mode() == "square";
    if (param_.context_pad() == 0 && !is_square) {
      return {.left = w.left,
              .top = w.top,
              .right = w.right,
              .bottom = w.bottom,
              .height = crop_,
              .width = crop_};
    }
    const float size = static_cast<float>(crop_);
    const float scale = size / (size - 2.0f * static_cast<float>(param_.context_pad()));
    float half_height = static_cast<float>(w.bottom - w.top + 1) / 2;
    float half_width = static_cast<float>(w.right - w.left + 1) / 2;
    const float x = static_cast<float>(w.left) + half_width;
    const float y = static_cast<float>(w.top) + half_height;
    if (is_square) half_height = half_width = std::max(half_height, half_width);
    const Side across = widened(x, half_width * scale, picture.width, crop_);
    const Side down = widened(y, half_height * scale, picture.height, crop_);
    return {.left = across.first,
            .top = down.first,
            .right = across.last,
            .bottom = down.last,
            .height = down.size,
            .width = across.size,
            .pad_top = down.pad_first,
            .pad_left = across.pad_first,
            .pad_right = across.pad_last};
  }

  void write_window(const PictureWindow& window, bool is_mirrored, Picture& picture,
                    float* out) const {
    Cut part = cut_of(window, picture);
    int pad_left = is_mirrored ? part.pad_right : part.pad_left;
    fit(crop_, &part.pad_top, &part.height);
    fit(crop_, &pad_left, &part.width);
    cut(part.left, part.top, part.right - part.left + 1, part.bottom - part.top + 1, &picture);
    picture = resize(picture, part.height, part.width);
    if (is_mirrored) mirror(&picture);
    const uint8_t* pixel = picture.pixels.data();
    for (int h = 0; h < picture.height; ++h) {
      for (int w = 0; w < picture.width; ++w) {
        for (int c = 0; c < channels_; ++c) {
          const int y = h + part.pad_top, x = w + pad_left;
          out[(int64_t{c} * crop_ + y) * crop_ + x] =
              (static_cast<float>(*pixel++) - mean_of(c, y, x)) * transform_.scale();
        }
      }
    }
  }

  /// Of the place in the result.
  float mean_of(int channel, int y, int x) const {
    if (!mean_) {
      const int means = transform_.mean_value_size();
      return means == 0 ? 0 : transform_.mean_value(means == 1 ? 0 : channel);
    }
    const Shape& s = mean_->shape;
    const int64_t height = s[s.axes() - 2], width = s[s.axes() - 1];
    const int64_t row = channel * height + (height - crop_) / 2 + y;
    return mean_->data[static_cast<size_t>(row * width + (width - crop_) / 2 + x)];
  }

  WindowDataParameter param_;
  TransformationParameter transform_;
  uint64_t key_;
  int rank_, ranks_, crop_ = 0, channels_ = 0;
  WindowFile file_;
  std::vector<size_t> foreground_, background_;
  uint64_t foreground_count_ = 0;  // of a batch
  std::optional<HostBlob> mean_;
  std::vector<std::string> bytes_;  // of the pictures' files; empty unless they are cached
  Shapes shapes_;
};

}  // namespace

std::unique_ptr<RecordLoader> make_window_loader(const WindowDataParameter& param,
                                                 const LoaderOptions& options) {
  return std::make_unique<WindowLoader>(param, options);
}

}  // namespace crema
