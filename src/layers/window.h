// The window that convolution, pooling and im2col slide over the spatial axes: reading its fields,
// sizes that follow.
#pragma once

#include <optional>
#include <vector>

#include "layers/layer.h"

namespace crema {

/// One property of a window as written: a list, or one number each for height and width.
struct WindowField {
  const char *name, *name_h, *name_w;
  std::vector<int64_t> values;  // empty, one for all axes, or one per axis
  std::optional<int64_t> h, w;
  std::optional<int64_t> unset;  // where nothing is written; empty: it must be
  std::optional<int64_t> other;  // where only h or only w is written; empty: both must be
  int64_t min = 0;
};

/// The field's value along each of `axes` spatial axes. Throws Error for fields that exclude each
/// other, a wrong number of values and values out of range.
SpatialDims read_window(const WindowField& field, int axes);

/// A convolution's geometry over one bottom.
struct ConvShape {
  int axis = 1;  // of the channels; axes before it are batch axes
  int64_t batch = 1, channels = 1;
  SpatialDims size, kernel, stride, pad, dilation;  // size: of the bottom
  /// How far the dilated kernel reaches along spatial axis i.
  int64_t extent(int i) const { return dilation[i] * (kernel[i] - 1) + 1; }
};

/// Reads axis, kernel, stride, pad and dilation. Throws Error with the field that is wrong.
ConvShape read_conv_shape(const ConvolutionParameter& param, const Shape& bottom);
/// Output sizes of a convolution, floor((size + 2 pad - extent) / stride) + 1. Throws Error when
/// one is below 1.
SpatialDims conv_output(const ConvShape& shape);
/// Output sizes of a deconvolution, stride (size - 1) + extent - 2 pad. Throws Error when one is
/// below 1.
SpatialDims deconv_output(const ConvShape& shape);

/// "3 5"
std::ostream& operator<<(std::ostream& out, const SpatialDims& dims);

}  // namespace crema
