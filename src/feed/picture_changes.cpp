// Changes of a picture in memory.
#include "feed/picture_changes.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "feed/box_sampling.h"

namespace crema {
namespace {

uint8_t to_byte(float v) { return static_cast<uint8_t>(std::lround(std::clamp(v, 0.0f, 255.0f))); }

bool happens(float probability, RandomStream& random) {
  return random.uniform() < static_cast<double>(probability);
}

void scale_and_shift(float factor, float delta, Picture* picture) {
  for (uint8_t& v : picture->pixels) v = to_byte(static_cast<float>(v) * factor + delta);
}

/// Hue in [0, 6), saturation and value in [0, 1].
struct Hsv {
  float hue, saturation, value;
};

Hsv to_hsv(const uint8_t* bgr) {
  const float b = bgr[0] / 255.0f, g = bgr[1] / 255.0f, r = bgr[2] / 255.0f;
  const float high = std::max({b, g, r}), low = std::min({b, g, r}), range = high - low;
  float hue = 0;
  if (range > 0) {
    if (high == r) {
      hue = (g - b) / range + (g < b ? 6.0f : 0.0f);
    } else {
      hue = high == g ? (b - r) / range + 2 : (r - g) / range + 4;
    }
  }
  return {hue, high > 0 ? range / high : 0, high};
}

void from_hsv(const Hsv& hsv, uint8_t* bgr) {
  // Each channel is value * (1 - saturation * how far its hue is away), see Smith 1978.
  const auto channel = [&](float offset) {
    const float k = std::fmod(offset + hsv.hue, 6.0f);
    const float away = std::clamp(std::min(k, 4 - k), 0.0f, 1.0f);
    return to_byte(255 * hsv.value * (1 - hsv.saturation * away));
  };
  bgr[2] = channel(5);
  bgr[1] = channel(3);
  bgr[0] = channel(1);
}

template <class Change>
void change_hsv(Picture* picture, const Change& change) {
  if (picture->channels != 3) return;
  for (size_t i = 0; i + 2 < picture->pixels.size(); i += 3) {
    Hsv hsv = to_hsv(picture->pixels.data() + i);
    change(hsv);
    from_hsv(hsv, picture->pixels.data() + i);
  }
}

void shift_brightness(const DistortionParameter& p, RandomStream& random, Picture* picture) {
  if (!happens(p.brightness_prob(), random)) return;
  scale_and_shift(1, draw_between(random, -p.brightness_delta(), p.brightness_delta()), picture);
}
void scale_contrast(const DistortionParameter& p, RandomStream& random, Picture* picture) {
  if (!happens(p.contrast_prob(), random)) return;
  scale_and_shift(draw_between(random, p.contrast_lower(), p.contrast_upper()), 0, picture);
}
void scale_saturation(const DistortionParameter& p, RandomStream& random, Picture* picture) {
  if (!happens(p.saturation_prob(), random)) return;
  const float factor = draw_between(random, p.saturation_lower(), p.saturation_upper());
  change_hsv(picture,
             [&](Hsv& hsv) { hsv.saturation = std::clamp(hsv.saturation * factor, 0.0f, 1.0f); });
}
void shift_hue(const DistortionParameter& p, RandomStream& random, Picture* picture) {
  if (!happens(p.hue_prob(), random)) return;
  const float turn =
      draw_between(random, -p.hue_delta(), p.hue_delta()) / 30;  // 180 is a full turn
  change_hsv(picture, [&](Hsv& hsv) { hsv.hue = std::fmod(hsv.hue + turn + 600, 6.0f); });
}

void reorder_channels(const DistortionParameter& p, RandomStream& random, Picture* picture) {
  if (picture->channels != 3 || !happens(p.random_order_prob(), random)) return;
  int order[3] = {0, 1, 2};
  for (int i = 2; i > 0; --i) {
    std::swap(order[i], order[random.below(static_cast<uint64_t>(i) + 1)]);
  }
  for (size_t i = 0; i + 2 < picture->pixels.size(); i += 3) {
    uint8_t* pixel = picture->pixels.data() + i;
    const uint8_t old[3] = {pixel[0], pixel[1], pixel[2]};
    for (int c = 0; c < 3; ++c) pixel[c] = old[order[c]];
  }
}

}  // namespace

void distort(const DistortionParameter& p, RandomStream& random, Picture* picture) {
  const bool contrast_first = random.uniform() < 0.5;
  shift_brightness(p, random, picture);
  if (contrast_first) scale_contrast(p, random, picture);
  scale_saturation(p, random, picture);
  shift_hue(p, random, picture);
  if (!contrast_first) scale_contrast(p, random, picture);
  reorder_channels(p, random, picture);
}

void check_expansion(const ExpansionParameter& param) {
  constexpr float kLargestRatio = 100;
  require(param.max_expand_ratio() >= 1, "expand_param: max_expand_ratio must be at least 1");
  require(param.max_expand_ratio() <= kLargestRatio,
          "expand_param: max_expand_ratio may be at most ", kLargestRatio);
  require(param.prob() >= 0 && param.prob() <= 1, "expand_param: prob must be in 0..1, not ",
          param.prob());
}

Box expand(const ExpansionParameter& param, const std::vector<float>& mean, RandomStream& random,
           Picture* picture) {
  const Box whole{0, 0, 1, 1};
  require(mean.size() <= 1 || mean.size() == static_cast<size_t>(picture->channels),
          "transform_param: ", mean.size(), " mean_value for pictures of ", picture->channels,
          " channels; give 1 or ", picture->channels);
  if (!happens(param.prob(), random)) return whole;
  const float ratio = draw_between(random, 1, param.max_expand_ratio());
  Picture canvas;
  canvas.channels = picture->channels;
  canvas.height = static_cast<int>(static_cast<float>(picture->height) * ratio);
  canvas.width = static_cast<int>(static_cast<float>(picture->width) * ratio);
  const auto free_rows = static_cast<uint64_t>(canvas.height - picture->height);
  const auto free_columns = static_cast<uint64_t>(canvas.width - picture->width);
  const int top = static_cast<int>(random.below(free_rows + 1));
  const int left = static_cast<int>(random.below(free_columns + 1));
  const auto channels = static_cast<size_t>(canvas.channels);
  canvas.pixels.resize(static_cast<size_t>(canvas.height) * static_cast<size_t>(canvas.width) *
                       channels);
  for (size_t i = 0; i < canvas.pixels.size() && !mean.empty(); ++i) {
    canvas.pixels[i] = to_byte(mean[mean.size() == 1 ? 0 : i % channels]);
  }
  const size_t row = static_cast<size_t>(picture->width) * channels;
  for (int h = 0; h < picture->height; ++h) {
    const size_t to = (static_cast<size_t>(top + h) * static_cast<size_t>(canvas.width) +
                       static_cast<size_t>(left)) *
                      channels;
    std::copy_n(picture->pixels.data() + static_cast<size_t>(h) * row, row,
                canvas.pixels.data() + to);
  }
  const auto height = static_cast<float>(picture->height);
  const auto width = static_cast<float>(picture->width);
  const Box seen{-static_cast<float>(left) / width, -static_cast<float>(top) / height,
                 static_cast<float>(canvas.width - left) / width,
                 static_cast<float>(canvas.height - top) / height};
  *picture = std::move(canvas);
  return seen;
}

void cut(int left, int top, int width, int height, Picture* picture) {
  if (width == picture->width && height == picture->height) return;
  Picture out{height, width, picture->channels, {}};
  const auto channels = static_cast<size_t>(out.channels);
  const size_t row = static_cast<size_t>(width) * channels;
  out.pixels.resize(row * static_cast<size_t>(height));
  for (int h = 0; h < height; ++h) {
    const size_t from = (static_cast<size_t>(top + h) * static_cast<size_t>(picture->width) +
                         static_cast<size_t>(left)) *
                        channels;
    std::copy_n(picture->pixels.data() + from, row,
                out.pixels.data() + static_cast<size_t>(h) * row);
  }
  *picture = std::move(out);
}

void crop(const Box& part, Picture* picture) {
  const Box kept = clipped(part);
  const auto place = [](float v, int size) {
    return std::min(static_cast<int>(v * static_cast<float>(size)), size - 1);
  };
  const int left = place(kept.xmin, picture->width), top = place(kept.ymin, picture->height);
  const int right = static_cast<int>(kept.xmax * static_cast<float>(picture->width));
  const int bottom = static_cast<int>(kept.ymax * static_cast<float>(picture->height));
  cut(left, top, std::max(1, right - left), std::max(1, bottom - top), picture);
}

void rotate(float degrees, Picture* picture) {
  if (degrees == 0) return;
  constexpr double kPi = 3.14159265358979323846;
  const double angle = static_cast<double>(degrees) * kPi / 180;
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const Picture from = *picture;
  const auto channels = static_cast<size_t>(from.channels);
  const double middle_x = (from.width - 1) / 2.0, middle_y = (from.height - 1) / 2.0;
  uint8_t* out = picture->pixels.data();
  for (int y = 0; y < from.height; ++y) {
    for (int x = 0; x < from.width; ++x) {
      const double dx = x - middle_x, dy = y - middle_y;
      const double at_x = std::clamp(middle_x + cosine * dx - sine * dy, 0.0, from.width - 1.0);
      const double at_y = std::clamp(middle_y + sine * dx + cosine * dy, 0.0, from.height - 1.0);
      const auto left = static_cast<size_t>(at_x), top = static_cast<size_t>(at_y);
      const size_t right = std::min(left + 1, static_cast<size_t>(from.width) - 1);
      const size_t bottom = std::min(top + 1, static_cast<size_t>(from.height) - 1);
      const double part_x = at_x - static_cast<double>(left);
      const double part_y = at_y - static_cast<double>(top);
      const auto value = [&](size_t row, size_t column, size_t c) {
        return static_cast<double>(
            from.pixels[(row * static_cast<size_t>(from.width) + column) * channels + c]);
      };
      for (size_t c = 0; c < channels; ++c) {
        const double above = value(top, left, c) * (1 - part_x) + value(top, right, c) * part_x;
        const double below =
            value(bottom, left, c) * (1 - part_x) + value(bottom, right, c) * part_x;
        *out++ = to_byte(static_cast<float>(above * (1 - part_y) + below * part_y));
      }
    }
  }
}

void mirror(Picture* picture) {
  const auto channels = static_cast<size_t>(picture->channels);
  const auto width = static_cast<size_t>(picture->width);
  for (size_t h = 0; h < static_cast<size_t>(picture->height); ++h) {
    uint8_t* row = picture->pixels.data() + h * width * channels;
    for (size_t w = 0; w < width / 2; ++w) {
      std::swap_ranges(row + w * channels, row + (w + 1) * channels,
                       row + (width - 1 - w) * channels);
    }
  }
}

}  // namespace crema
