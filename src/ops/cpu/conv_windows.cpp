// Sizes of windows, their padding, and the band that a chunk of pixels reads.
#include "ops/cpu/conv_windows.h"

#include <algorithm>

#include "ops/cpu/conv_sizes.h"

namespace crema {

ConvWindows windows_of(const ConvDesc& desc) {
  ConvWindows windows{};
  windows.batch = desc.x.shape[0];
  windows.channels = desc.x.shape[1];
  windows.height = size_along(desc.x.shape, 0);
  windows.width = size_along(desc.x.shape, 1);
  windows.out_channels = desc.y.shape[1];
  windows.out_height = size_along(desc.y.shape, 0);
  windows.out_width = size_along(desc.y.shape, 1);
  windows.groups = desc.groups;
  for (int axis = 0; axis < 2; ++axis) {
    windows.kernel[axis] = size_along(desc.w.shape, axis);
    windows.stride[axis] = along(desc.stride, axis, 1);
    windows.pad[axis] = along(desc.pad, axis, 0);
    windows.dilation[axis] = along(desc.dilation, axis, 1);
  }
  return windows;
}

double share_inside(const ConvWindows& windows, int axis) {
  const int64_t size = axis == 0 ? windows.height : windows.width;
  const int64_t out = axis == 0 ? windows.out_height : windows.out_width;
  int64_t inside = 0;
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t k = 0; k < windows.kernel[axis]; ++k) {
      const int64_t first = o * windows.stride[axis] - windows.pad[axis];
      const int64_t at = first + k * windows.dilation[axis];
      inside += at >= 0 && at < size;
    }
  }
  return static_cast<double>(inside) / static_cast<double>(out * windows.kernel[axis]);
}

int64_t band_floats(const ConvWindows& windows, int64_t extra) {
  if (!windows.has_band) return 0;
  const int64_t line = (windows.width + 2 * windows.pad[1]) * windows.channels;
  const int64_t reach = (windows.kernel[0] - 1) * windows.dilation[0] + 1;
  const int64_t rows = (kConvParamsDepth - 1) / windows.out_width + 2;
  return (rows * std::max(windows.stride[0], reach) * line + extra + 15) / 16 * 16;
}

}  // namespace crema
