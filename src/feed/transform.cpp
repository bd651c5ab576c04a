// Decides the window and the mean of each row; the arithmetic over rows is in transform_rows.cpp.
#include "feed/transform.h"

#include <cstring>

#include "base/error.h"
#include "base/philox.h"
#include "base/trace.h"
#include "feed/picture_resizing.h"
#include "feed/transform_rows.h"
#include "io/mean.h"

namespace crema {
namespace {

/// word scaled to [0, bound).
int below(uint32_t word, int bound) {
  return static_cast<int>((uint64_t{word} * static_cast<uint64_t>(bound)) >> 32);
}

std::string size_text(const Pixels& p) { return str(p.channels, " x ", p.height, " x ", p.width); }

}  // namespace

Pixels pixels_of(const Picture& picture) {
  return {picture.channels, picture.height, picture.width, picture.pixels.data(), nullptr, true};
}

CropSize crop_size_of(const TransformationParameter& param) {
  require((param.crop_h() > 0) == (param.crop_w() > 0),
          "transform_param: crop_h and crop_w must be given both or neither");
  require(param.crop_h() == 0 || param.crop_size() == 0,
          "transform_param: crop_size and crop_h with crop_w exclude each other");
  if (param.crop_h() > 0) return {param.crop_h(), param.crop_w()};
  return {param.crop_size(), param.crop_size()};
}

Transformer::Transformer(const TransformationParameter& param, Phase phase, uint64_t key)
    : param_(param), phase_(phase), key_(key), crop_(crop_size_of(param)) {
  require(!param.force_color() || !param.force_gray(),
          "transform_param: force_color and force_gray exclude each other");
  require(!param.has_mean_file() || param.mean_value_size() == 0,
          "transform_param: mean_file and mean_value exclude each other");
  if (param.has_mean_file()) mean_ = read_mean(param.mean_file());
}

ColorMode Transformer::color_mode() const {
  if (param_.force_color()) return ColorMode::color;
  return param_.force_gray() ? ColorMode::gray : ColorMode::as_stored;
}

Shape Transformer::output_shape(const Pixels& p) const {
  if (crop_.height > p.height || crop_.width > p.width) {
    const std::string written =
        param_.crop_size() > 0 ? str("crop_size ", crop_.height)
                               : str("the crop of height ", crop_.height, ", width ", crop_.width);
    fail("transform_param: ", written, " is larger than the picture (height ", p.height, ", width ",
         p.width, ")");
  }
  const Shape out{p.channels, crop_.height ? crop_.height : p.height,
                  crop_.width ? crop_.width : p.width};
  if (mean_) check_mean(p, out);
  const int means = param_.mean_value_size();
  require(means <= 1 || means == p.channels, "transform_param: ", means,
          " mean_value for pictures of ", p.channels, " channels; give 1 or ", p.channels);
  return out;
}

void Transformer::check_mean(const Pixels& p, const Shape& out) const {
  const Shape& s = mean_->shape;
  const int64_t leading = s.axes() > 3 ? s.count(0, s.axes() - 3) : 1;
  const bool is_picture = s.axes() >= 3 && leading == 1 && s[s.axes() - 3] == p.channels;
  const bool is_whole = is_picture && s[s.axes() - 2] == p.height && s[s.axes() - 1] == p.width;
  const bool may_differ =
      param_.has_resize_param() || param_.has_expand_param() || has_random_size(param_);
  const bool covers = is_picture && s[s.axes() - 2] >= out[1] && s[s.axes() - 1] >= out[2];
  if (is_whole || (may_differ && covers)) return;
  fail("transform_param: ", param_.mean_file(), " has shape ", s, ", but the pictures are ",
       size_text(p), " before cropping");
}

Transformer::Window Transformer::window_of(const Pixels& p, uint64_t record) const {
  const int height = static_cast<int>(crop_.height), width = static_cast<int>(crop_.width);
  const bool is_cropped = height > 0;
  Window window{0, 0, is_cropped ? height : p.height, is_cropped ? width : p.width, false};
  const bool is_random_crop = is_cropped && phase_ == TRAIN;
  if (is_cropped && !is_random_crop) {
    window.top = (p.height - height) / 2;
    window.left = (p.width - width) / 2;
  }
  if (!is_random_crop && !param_.mirror()) return window;
  const Philox4 words = philox(key_, record);
  if (is_random_crop) {
    window.top = below(words.v[0], p.height - height + 1);
    window.left = below(words.v[1], p.width - width + 1);
  }
  window.is_mirrored = param_.mirror() && (words.v[2] & 1u);
  return window;
}

Transformer::MeanWindow Transformer::mean_window(const Pixels& p, const Window& window) const {
  const Shape& s = mean_->shape;
  const int64_t height = s[s.axes() - 2], width = s[s.axes() - 1];
  const bool is_whole = height == p.height && width == p.width;
  const int64_t top = is_whole ? window.top : (height - window.height) / 2;
  const int64_t left = is_whole ? window.left : (width - window.width) / 2;
  return {mean_->data.data() + top * width + left, height * width, width};
}

float Transformer::mean_of(int channel) const {
  if (param_.mean_value_size() == 0) return 0;
  return param_.mean_value(param_.mean_value_size() == 1 ? 0 : channel);
}

void Transformer::apply(const Pixels& p, uint64_t record, float* out) const {
  const TraceSpan span("feed", "transform");
  const Window window = window_of(p, record);
  const int64_t step = p.is_interleaved ? p.channels : 1;
  MeanWindow mean;
  if (mean_) mean = mean_window(p, window);
  for (int c = 0; c < p.channels; ++c) {
    const int64_t plane = int64_t{c} * p.height * p.width;  // of C,H,W order
    const int64_t corner = int64_t{window.top} * p.width + window.left;
    const int64_t from = p.is_interleaved ? corner * p.channels + c : plane + corner;
    RowBlock block;
    block.bytes = p.bytes ? p.bytes + from : nullptr;
    block.floats = p.bytes ? nullptr : p.floats + from;
    block.step = step;
    block.pitch = p.width * step;
    block.mean_row = mean_ ? mean.corner + c * mean.plane : nullptr;
    block.mean_pitch = mean.pitch;
    block.mean = mean_of(c);
    block.scale = param_.scale();
    block.height = window.height;
    block.width = window.width;
    block.is_mirrored = window.is_mirrored;
    transform_rows(block, out + int64_t{c} * window.height * window.width);
  }
}

ByteFormat Transformer::byte_format(const Pixels& p) const {
  ByteFormat format{.record = output_shape(p),
                    .is_interleaved = p.is_interleaved,
                    .scale = param_.scale(),
                    .mean = {}};
  if (mean_) {
    const Shape& s = mean_->shape;
    format.mean = mean_->data;
    format.mean_height = s[s.axes() - 2];
    format.mean_width = s[s.axes() - 1];
  } else {
    for (int c = 0; c < p.channels; ++c) format.mean.push_back(mean_of(c));
  }
  return format;
}

void Transformer::crop_bytes(const Pixels& p, uint64_t record, const ByteFormat& format,
                             const BytePlace& place) const {
  const TraceSpan span("feed", "crop");
  const Window window = window_of(p, record);
  *place.record = {window.top, window.left, window.is_mirrored};
  const int64_t from_c = p.is_interleaved ? 1 : int64_t{p.height} * p.width;
  const int64_t from_x = p.is_interleaved ? p.channels : 1, from_y = from_x * p.width;
  const int64_t to_c = format.is_interleaved ? 1 : int64_t{window.height} * window.width;
  const int64_t to_x = format.is_interleaved ? p.channels : 1, to_y = to_x * window.width;
  const uint8_t* corner = p.bytes + window.top * from_y + window.left * from_x;
  // Rows of one order are copied whole: of all channels, or of one after another.
  const bool is_same_order = p.is_interleaved == format.is_interleaved || p.channels == 1;
  const int planes = is_same_order && format.is_interleaved ? 1 : p.channels;
  for (int c = 0; c < planes; ++c) {
    for (int y = 0; y < window.height; ++y) {
      const uint8_t* from = corner + c * from_c + y * from_y;
      uint8_t* to = place.pixels + c * to_c + y * to_y;
      if (is_same_order) {
        std::memcpy(to, from, static_cast<size_t>(window.width * to_x));
      } else {
        for (int x = 0; x < window.width; ++x) to[x * to_x] = from[x * from_x];
      }
    }
  }
}

}  // namespace crema
