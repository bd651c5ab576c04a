// SSD's noise_param: what spoils a picture in memory.
#pragma once

#include "base/philox.h"
#include "crema.pb.h"
#include "io/image.h"

namespace crema {

/// Throws Error for numbers that are out of range.
void check_noise(const NoiseParameter& param);

/// All that are set, in this order: decolorize, gauss_blur, hist_eq, clahe, jpeg (a quality),
/// erode, posterize (4 levels), inverse, saltpepper (fraction of the pixels, each in `value`, black
/// or white by lot where none is written), convert_to_hsv, convert_to_lab; with probability prob,
/// always where it is not written. Gray pictures are not decolorized. Throws Error where the
/// picture's channels do not fit.
void add_noise(const NoiseParameter& param, RandomStream& random, Picture* picture);

}  // namespace crema
