// The arithmetic of new sizes; the pixels are io/image.h's work, borders are filled here.
#include "feed/picture_resizing.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "feed/box_sampling.h"
#include "feed/transform.h"

namespace crema {
namespace {

constexpr uint32_t kLargestSide = 1u << 15;

struct Size {
  int height = 0, width = 0;
};

Interpolation interpolation_of(ResizeParameter::Interp_mode mode) {
  switch (mode) {
    case ResizeParameter::NEAREST:
      return Interpolation::nearest;
    case ResizeParameter::AREA:
      return Interpolation::area;
    case ResizeParameter::CUBIC:
      return Interpolation::cubic;
    case ResizeParameter::LANCZOS4:
      return Interpolation::lanczos;
    case ResizeParameter::LINEAR:
      break;
  }
  return Interpolation::linear;
}

Interpolation interpolation_of(TransformationParameter::InterpolationAlgo algo) {
  switch (algo) {
    case TransformationParameter::INTER_NEAREST:
      return Interpolation::nearest;
    case TransformationParameter::INTER_CUBIC:
      return Interpolation::cubic;
    case TransformationParameter::INTER_AREA:
      return Interpolation::area;
    case TransformationParameter::INTER_LINEAR:
      break;
  }
  return Interpolation::linear;
}

Interpolation drawn_interpolation(const ResizeParameter& param, RandomStream& random) {
  const int modes = param.interp_mode_size();
  if (modes == 0) return Interpolation::linear;
  const uint64_t chosen = modes > 1 ? random.below(static_cast<uint64_t>(modes)) : 0;
  return interpolation_of(param.interp_mode(static_cast<int>(chosen)));
}

/// The size that a picture of this size fits into, or covers, with its ratio kept.
Size target_size(const ResizeParameter& param) {
  const bool covers = param.resize_mode() == ResizeParameter::FIT_SMALL_SIZE;
  const bool scales = covers && param.height_scale() > 0;
  return {static_cast<int>(scales ? param.height_scale() : param.height()),
          static_cast<int>(scales ? param.width_scale() : param.width())};
}

Size kept_ratio(const Picture& picture, const Size& target, bool covers) {
  const float ratio = static_cast<float>(picture.width) / static_cast<float>(picture.height);
  const bool is_wide = ratio > static_cast<float>(target.width) / static_cast<float>(target.height);
  Size size = target;
  if (is_wide != covers) {
    size.height = static_cast<int>(static_cast<float>(target.width) / ratio);
  } else {
    size.width = static_cast<int>(ratio * static_cast<float>(target.height));
  }
  size.height = std::max(size.height, 1);
  size.width = std::max(size.width, 1);
  require(size.height <= static_cast<int>(kLargestSide) * 4 &&
              size.width <= static_cast<int>(kLargestSide) * 4,
          "a picture of ", picture.height, " x ", picture.width, " cannot become ", size.height,
          " x ", size.width);
  return size;
}

/// Where in 0..size-1 the value beside the border comes from; -1: it is the constant.
int source_of(int at, int size, ResizeParameter::Pad_mode mode) {
  if (at >= 0 && at < size) return at;
  if (mode == ResizeParameter::CONSTANT) return -1;
  if (mode == ResizeParameter::REPEAT_NEAREST || size == 1) return std::clamp(at, 0, size - 1);
  const int period = 2 * (size - 1);  // the border itself is not repeated
  const int folded = ((at % period) + period) % period;
  return folded < size ? folded : period - folded;
}

/// The picture in the middle of a canvas.
Box pad(const ResizeParameter& param, const Size& canvas, Picture* picture) {
  const int channels = picture->channels, values = param.pad_value_size();
  require(values <= 1 || values == channels, "resize_param: ", values,
          " pad_value for pictures of ", channels, " channels; give 1 or ", channels);
  const int top = (canvas.height - picture->height) / 2;
  const int left = (canvas.width - picture->width) / 2;
  Picture out{canvas.height, canvas.width, channels, {}};
  out.pixels.reserve(static_cast<size_t>(canvas.height) * static_cast<size_t>(canvas.width) *
                     static_cast<size_t>(channels));
  for (int y = 0; y < canvas.height; ++y) {
    const int from_y = source_of(y - top, picture->height, param.pad_mode());
    for (int x = 0; x < canvas.width; ++x) {
      const int from_x = source_of(x - left, picture->width, param.pad_mode());
      for (int c = 0; c < channels; ++c) {
        if (from_x < 0 || from_y < 0) {
          const float value = values == 0 ? 0 : param.pad_value(values == 1 ? 0 : c);
          out.pixels.push_back(static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f)));
        } else {
          out.pixels.push_back(
              picture->pixels[(static_cast<size_t>(from_y) * static_cast<size_t>(picture->width) +
                               static_cast<size_t>(from_x)) *
                                  static_cast<size_t>(channels) +
                              static_cast<size_t>(c)]);
        }
      }
    }
  }
  const auto height = static_cast<float>(picture->height);
  const auto width = static_cast<float>(picture->width);
  const Box seen{static_cast<float>(-left) / width, static_cast<float>(-top) / height,
                 static_cast<float>(canvas.width - left) / width,
                 static_cast<float>(canvas.height - top) / height};
  *picture = std::move(out);
  return seen;
}

void require_range(const char* lower_name, float lower, float upper, float least) {
  require(lower >= least && upper >= lower, "transform_param: ", lower_name, " ", lower,
          " and its upper value ", upper, " must be at least ", least, ", and in this order");
}

/// Whether one of the two was written and both stand for something.
bool has_lengths(const TransformationParameter& p) {
  return p.img_rand_resize_lower() > 0 || p.img_rand_resize_upper() > 0;
}
bool has_ratio(const TransformationParameter& p) {
  return p.rand_resize_ratio_lower() > 0 || p.rand_resize_ratio_upper() > 0;
}
bool has_stretch(const TransformationParameter& p) {
  return p.vertical_stretch_lower() != 1 || p.vertical_stretch_upper() != 1 ||
         p.horizontal_stretch_lower() != 1 || p.horizontal_stretch_upper() != 1;
}

}  // namespace

void check_resize(const ResizeParameter& param) {
  require(param.prob() >= 0 && param.prob() <= 1, "resize_param: prob must be in 0..1, not ",
          param.prob());
  require((param.height_scale() > 0) == (param.width_scale() > 0),
          "resize_param: height_scale and width_scale must be given both or neither");
  require(param.height_scale() == 0 || param.resize_mode() == ResizeParameter::FIT_SMALL_SIZE,
          "resize_param: height_scale and width_scale are for resize_mode FIT_SMALL_SIZE");
  const Size size = target_size(param);
  const auto is_side = [](int side) { return side > 0 && side <= static_cast<int>(kLargestSide); };
  require(is_side(size.height) && is_side(size.width),
          "resize_param: height and width must be given, at most ", kLargestSide);
}

bool has_one_size(const ResizeParameter& param) {
  return param.prob() >= 1 && param.resize_mode() != ResizeParameter::FIT_SMALL_SIZE;
}

Box resize(const ResizeParameter& param, RandomStream& random, Picture* picture) {
  const Box whole{0, 0, 1, 1};
  if (param.prob() < 1 && random.uniform() >= static_cast<double>(param.prob())) return whole;
  const Interpolation how = drawn_interpolation(param, random);
  const Size target = target_size(param);
  Size size = target;
  if (param.resize_mode() != ResizeParameter::WARP) {
    size = kept_ratio(*picture, target, param.resize_mode() == ResizeParameter::FIT_SMALL_SIZE);
  }
  *picture = resize(*picture, size.height, size.width, how);
  if (param.resize_mode() != ResizeParameter::FIT_LARGE_SIZE_AND_PAD) return whole;
  return pad(param, target, picture);
}

bool has_random_size(const TransformationParameter& p) {
  return has_lengths(p) || has_ratio(p) || has_stretch(p);
}

void check_random_size(const TransformationParameter& p) {
  if (has_lengths(p)) {
    require(p.img_rand_resize_lower() > 0 && p.img_rand_resize_upper() > 0,
            "transform_param: img_rand_resize_lower and img_rand_resize_upper must be given both");
    require_range("img_rand_resize_lower", static_cast<float>(p.img_rand_resize_lower()),
                  static_cast<float>(p.img_rand_resize_upper()), 1);
    require(p.img_rand_resize_upper() <= kLargestSide,
            "transform_param: img_rand_resize_upper may be at most ", kLargestSide);
  }
  if (has_ratio(p)) {
    require_range("rand_resize_ratio_lower", p.rand_resize_ratio_lower(),
                  p.rand_resize_ratio_upper(), 1);
  }
  constexpr float kLeastStretch = 0.01f;
  require_range("vertical_stretch_lower", p.vertical_stretch_lower(), p.vertical_stretch_upper(),
                kLeastStretch);
  require_range("horizontal_stretch_lower", p.horizontal_stretch_lower(),
                p.horizontal_stretch_upper(), kLeastStretch);
}

void resize_randomly(const TransformationParameter& p, RandomStream& random, Picture* picture) {
  float height = static_cast<float>(picture->height), width = static_cast<float>(picture->width);
  if (has_lengths(p)) {
    const uint64_t lower = p.img_rand_resize_lower(), upper = p.img_rand_resize_upper();
    const auto length = static_cast<float>(lower + random.below(upper - lower + 1));
    const float scale = length / std::min(height, width);
    height *= scale;
    width *= scale;
  }
  if (has_ratio(p)) {
    const float ratio =
        draw_between(random, p.rand_resize_ratio_lower(), p.rand_resize_ratio_upper());
    const bool is_wide = width != height ? width > height : random.uniform() < 0.5;
    (is_wide ? width : height) = (is_wide ? height : width) * ratio;
  }
  height *= draw_between(random, p.vertical_stretch_lower(), p.vertical_stretch_upper());
  width *= draw_between(random, p.horizontal_stretch_lower(), p.horizontal_stretch_upper());
  const CropSize crop = crop_size_of(p);
  const auto limited = [&](float side, int64_t least, int had) {
    const float most = p.allow_upscale() ? 4.0f * kLargestSide : static_cast<float>(had);
    const auto rounded = std::lround(std::clamp(side, 1.0f, 4.0f * kLargestSide));
    return static_cast<int>(
        std::min<int64_t>(std::max<int64_t>(rounded, least), static_cast<int64_t>(most)));
  };
  const int new_height = limited(height, crop.height, picture->height);
  const int new_width = limited(width, crop.width, picture->width);
  if (new_height == picture->height && new_width == picture->width) return;
  const bool is_smaller = new_height <= picture->height && new_width <= picture->width;
  *picture = resize(
      *picture, new_height, new_width,
      interpolation_of(is_smaller ? p.interpolation_algo_down() : p.interpolation_algo_up()));
}

}  // namespace crema
