// What the weight gradients of 2-D nhwc convolutions share in their set-up.
#pragma once

#include "ops/cpu/isa/isa.h"

namespace crema {

/// The sizes of desc; has_band, x and dy are left empty.
ConvWindows windows_of(const ConvDesc& desc);

/// Of the output places along an axis (0: height, 1: width) times the taps: how many read the
/// picture, not its padding.
double share_inside(const ConvWindows& windows, int axis);

/// Floats of one thread's band; extra: how many may be read behind the last row.
int64_t band_floats(const ConvWindows& windows, int64_t extra);

}  // namespace crema
