// One stream of draws for each record, so that a picture changes in the same way in every thread.
#include "feed/augmentation.h"

#include "base/error.h"
#include "base/philox.h"
#include "feed/box_sampling.h"
#include "feed/picture_changes.h"
#include "feed/picture_noise.h"
#include "feed/picture_resizing.h"

namespace crema {

bool changes_pictures(const TransformationParameter& param) {
  return param.has_distort_param() || param.has_expand_param() || param.has_resize_param() ||
         has_random_size(param) || param.max_rotation() != 0 || param.has_noise_param();
}

Augmentation::Augmentation(const TransformationParameter& param, uint64_t key)
    : param_(param),
      key_(mix_key(key, hash_name("augmentation"))),
      is_empty_(!changes_pictures(param)) {
  if (param.has_expand_param()) check_expansion(param.expand_param());
  if (param.has_resize_param()) check_resize(param.resize_param());
  if (param.has_noise_param()) check_noise(param.noise_param());
  check_random_size(param);
  require(param.max_rotation() >= 0 && param.max_rotation() <= 180,
          "transform_param: max_rotation must be in 0..180 degrees, not ", param.max_rotation());
}

Pixels Augmentation::changed(const Pixels& pixels, uint64_t record, Picture& storage) const {
  if (is_empty_) return pixels;
  const bool is_stored = pixels.is_interleaved && pixels.bytes == storage.pixels.data();
  if (!is_stored) storage = picture_of(pixels);
  RandomStream random(mix_key(key_, record));
  if (param_.has_distort_param()) distort(param_.distort_param(), random, &storage);
  if (param_.has_expand_param()) {
    const std::vector<float> mean(param_.mean_value().begin(), param_.mean_value().end());
    expand(param_.expand_param(), mean, random, &storage);
  }
  if (param_.has_resize_param()) resize(param_.resize_param(), random, &storage);
  if (has_random_size(param_)) resize_randomly(param_, random, &storage);
  if (const float most = param_.max_rotation(); most > 0) {
    rotate(draw_between(random, -most, most), &storage);
  }
  if (param_.has_noise_param()) add_noise(param_.noise_param(), random, &storage);
  return pixels_of(storage);
}

TransformationParameter without_chance(const TransformationParameter& param) {
  TransformationParameter out = param;
  out.clear_mirror();
  out.clear_distort_param();
  out.clear_expand_param();
  out.clear_noise_param();
  out.clear_emit_constraint();
  out.clear_max_rotation();
  out.clear_random_seed();
  out.clear_rand_resize_ratio_lower();
  out.clear_rand_resize_ratio_upper();
  out.clear_vertical_stretch_lower();
  out.clear_vertical_stretch_upper();
  out.clear_horizontal_stretch_lower();
  out.clear_horizontal_stretch_upper();
  if (out.img_rand_resize_lower() > 0 && out.img_rand_resize_upper() > 0) {
    const uint32_t middle = (out.img_rand_resize_lower() + out.img_rand_resize_upper()) / 2;
    out.set_img_rand_resize_lower(middle);
    out.set_img_rand_resize_upper(middle);
  }
  if (out.has_resize_param()) {
    ResizeParameter& resize = *out.mutable_resize_param();
    resize.clear_prob();
    while (resize.interp_mode_size() > 1) resize.mutable_interp_mode()->RemoveLast();
  }
  return out;
}

Picture picture_of(const Pixels& pixels) {
  require(pixels.bytes != nullptr, "the picture must be encoded or bytes, not floats");
  Picture picture{pixels.height, pixels.width, pixels.channels, {}};
  const auto places = static_cast<size_t>(pixels.height) * static_cast<size_t>(pixels.width);
  const auto channels = static_cast<size_t>(pixels.channels);
  if (pixels.is_interleaved) {
    picture.pixels.assign(pixels.bytes, pixels.bytes + places * channels);
    return picture;
  }
  picture.pixels.resize(places * channels);
  for (size_t i = 0; i < picture.pixels.size(); ++i) {
    picture.pixels[i] = pixels.bytes[i % channels * places + i / channels];
  }
  return picture;
}

}  // namespace crema
