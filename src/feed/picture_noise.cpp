// Filters are io/image.h's; what works on single values is here.
// BVLC: SSD reads prob nowhere, and cuts its Lab values to 0..1.
#include "feed/picture_noise.h"

#include <algorithm>

#include "base/error.h"

namespace crema {
namespace {

/// Black or white where no value is written.
void salt_and_pepper(const SaltPepperParameter& param, RandomStream& random, Picture* picture) {
  const int channels = picture->channels, values = param.value_size();
  require(values <= 1 || values == channels, "saltpepper_param: ", values,
          " value for pictures of ", channels, " channels; give 1 or ", channels);
  const auto places =
      static_cast<uint64_t>(picture->height) * static_cast<uint64_t>(picture->width);
  const auto count =
      static_cast<uint64_t>(static_cast<double>(param.fraction()) * static_cast<double>(places));
  for (uint64_t i = 0; i < count; ++i) {
    uint8_t* pixel =
        picture->pixels.data() + random.below(places) * static_cast<uint64_t>(channels);
    const float drawn = values == 0 ? static_cast<float>(random.below(2) * 255) : 0;
    for (int c = 0; c < channels; ++c) {
      const float value = values == 0 ? drawn : param.value(values == 1 ? 0 : c);
      pixel[c] = static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f));
    }
  }
}

template <class Change>
void change_values(Picture* picture, const Change& change) {
  for (uint8_t& v : picture->pixels) v = static_cast<uint8_t>(change(v));
}

void as_jpeg(float quality, Picture* picture) {
  const ColorMode mode = picture->channels == 1 ? ColorMode::gray : ColorMode::color;
  const std::string bytes = encode_jpeg(*picture, static_cast<int>(quality));
  decode(bytes, mode, *picture);
}

}  // namespace

void check_noise(const NoiseParameter& p) {
  require(p.prob() >= 0 && p.prob() <= 1, "noise_param: prob must be in 0..1, not ", p.prob());
  require(p.jpeg() <= 100, "noise_param: jpeg is a quality of at most 100, not ", p.jpeg());
  const float fraction = p.saltpepper_param().fraction();
  require(fraction >= 0 && fraction <= 1, "saltpepper_param: fraction must be in 0..1, not ",
          fraction);
  require(!p.convert_to_hsv() || !p.convert_to_lab(),
          "noise_param: convert_to_hsv and convert_to_lab exclude each other");
}

void add_noise(const NoiseParameter& p, RandomStream& random, Picture* picture) {
  constexpr int kLevel = 64;  // of posterize: values between multiples of it become one
  if (p.has_prob() && random.uniform() >= static_cast<double>(p.prob())) return;
  const auto apply = [&](bool is_set, PictureFilter filter) {
    if (is_set) *picture = filtered(*picture, filter);
  };
  apply(p.decolorize() && picture->channels == 3, PictureFilter::gray);
  apply(p.gauss_blur(), PictureFilter::blur);
  apply(p.hist_eq(), PictureFilter::equalize);
  apply(p.clahe(), PictureFilter::clahe);
  if (p.jpeg() > 0) as_jpeg(p.jpeg(), picture);
  apply(p.erode(), PictureFilter::erode);
  if (p.posterize()) change_values(picture, [](int v) { return v / kLevel * kLevel + kLevel / 2; });
  if (p.inverse()) change_values(picture, [](int v) { return 255 - v; });
  if (p.saltpepper()) salt_and_pepper(p.saltpepper_param(), random, picture);
  apply(p.convert_to_hsv(), PictureFilter::hsv);
  apply(p.convert_to_lab(), PictureFilter::lab);
}

}  // namespace crema
