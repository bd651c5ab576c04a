// New sizes of pictures in memory, before the crop: SSD's resize_param, and NVCaffe's lengths and
// stretches that are drawn for each picture.
#pragma once

#include "base/box.h"
#include "base/philox.h"
#include "crema.pb.h"
#include "io/image.h"

namespace crema {

/// Throws Error for sizes that are missing or too large and for a prob that is none.
void check_resize(const ResizeParameter& param);

/// Whether the pictures that resize() gives have one size, whatever theirs was.
bool has_one_size(const ResizeParameter& param);

/// With probability prob, the picture in the size of param (SSD): WARP stretches it,
/// FIT_LARGE_SIZE_AND_PAD puts the whole of it in the middle and fills what is left as pad_mode
/// says, FIT_SMALL_SIZE covers the size (height_scale and width_scale where they are written) and
/// leaves the longer side longer. Of several interp_mode one is drawn; LINEAR where none is
/// written. Returns the new picture as a crop of the old one, beyond its borders where it is
/// padded. Throws Error for a number of pad_value that is neither 1 nor that of the channels.
Box resize(const ResizeParameter& param, RandomStream& random, Picture* picture);

/// Whether resize_randomly changes pictures.
bool has_random_size(const TransformationParameter& param);

/// Throws Error for ranges that are empty or not whole.
void check_random_size(const TransformationParameter& param);

/// NVCaffe's: the shorter side becomes a length drawn from img_rand_resize_lower..upper, the longer
/// one follows; with rand_resize_ratio (1 and above) the longer side is a drawn multiple of the
/// shorter one instead; then each side is multiplied by a drawn stretch. No side becomes shorter
/// than the crop, nor, without allow_upscale, longer than it was. interpolation_algo_down where
/// neither side grows, else interpolation_algo_up.
void resize_randomly(const TransformationParameter& param, RandomStream& random, Picture* picture);

}  // namespace crema
