// Where an element lies, worked out from the desc: the only thing the oracle knows about layouts.
#pragma once

#include <vector>

#include "ops/ops.h"

namespace crema::reference {

/// A tensor seen as n items of c channels of `spatial` places; offset(n, c, s) in elements.
struct Planes {
  explicit Planes(const TensorDesc& desc);
  int64_t n, c, spatial;
  int64_t n_stride, c_stride, s_stride;
  int64_t offset(int64_t item, int64_t channel, int64_t place) const {
    return item * n_stride + channel * c_stride + place * s_stride;
  }
};

/// The offset of every element, listed in N,C,H,W order.
std::vector<int64_t> offsets(const TensorDesc& desc);

/// The windows that convolution and pooling slide over an input's spatial axes.
struct WindowDesc {
  Shape in, out, kernel;  // spatial sizes only
  SpatialDims stride, pad, dilation;
};
class Windows {
 public:
  explicit Windows(const WindowDesc& desc);
  int64_t outputs() const { return outputs_; }
  int64_t kernels() const { return kernels_; }
  /// Flat place in the input of kernel element k of the window of output o; -1 in the padding.
  int64_t at(int64_t o, int64_t k) const { return table_[static_cast<size_t>(o * kernels_ + k)]; }

 private:
  int64_t outputs_, kernels_;
  std::vector<int64_t> table_;
};

/// The sizes along the spatial axes of a tensor.
inline Shape spatial_shape(const TensorDesc& desc) {
  return desc.shape.axes() > 2 ? desc.shape.slice(2, desc.shape.axes()) : Shape();
}
/// dims as a shape.
Shape shape_of(const SpatialDims& dims);
/// n times v.
SpatialDims uniform_dims(int n, int64_t v);

/// The index along every axis of flat place i of a shape.
std::vector<int64_t> unravel(const Shape& shape, int64_t i);

/// result into (or added to) a gradient, in the order of memory; rounded once. Nothing when it is
/// not wanted.
void write(const std::vector<double>& result, const Grad& grad);

}  // namespace crema::reference
