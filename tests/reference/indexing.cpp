// Index arithmetic of the oracle.
#include "reference/indexing.h"

namespace crema::reference {

Planes::Planes(const TensorDesc& desc)
    : n(desc.shape.dim_or_one(0)),
      c(desc.shape.dim_or_one(1)),
      spatial(desc.shape.axes() > 2 ? desc.shape.count(2) : 1),
      n_stride(c * spatial),
      c_stride(desc.layout == Layout::nhwc ? 1 : spatial),
      s_stride(desc.layout == Layout::nhwc ? c : 1) {}

std::vector<int64_t> offsets(const TensorDesc& desc) {
  const Planes planes(desc);
  std::vector<int64_t> out;
  for (int64_t n = 0; n < planes.n; ++n) {
    for (int64_t c = 0; c < planes.c; ++c) {
      for (int64_t s = 0; s < planes.spatial; ++s) out.push_back(planes.offset(n, c, s));
    }
  }
  return out;
}

std::vector<int64_t> unravel(const Shape& shape, int64_t i) {
  std::vector<int64_t> index(static_cast<size_t>(shape.axes()));
  for (int axis = shape.axes() - 1; axis >= 0; --axis) {
    index[static_cast<size_t>(axis)] = i % shape[axis];
    i /= shape[axis];
  }
  return index;
}

Windows::Windows(const WindowDesc& desc)
    : outputs_(desc.out.count()), kernels_(desc.kernel.count()) {
  for (int64_t o = 0; o < outputs_; ++o) {
    const std::vector<int64_t> out = unravel(desc.out, o);
    for (int64_t k = 0; k < kernels_; ++k) {
      const std::vector<int64_t> tap = unravel(desc.kernel, k);
      int64_t flat = 0;
      for (int axis = 0; axis < desc.in.axes(); ++axis) {
        const auto a = static_cast<size_t>(axis);
        const int64_t place =
            out[a] * desc.stride[axis] - desc.pad[axis] + tap[a] * desc.dilation[axis];
        const bool inside = flat >= 0 && place >= 0 && place < desc.in[axis];
        flat = inside ? flat * desc.in[axis] + place : -1;
      }
      table_.push_back(flat);
    }
  }
}

Shape shape_of(const SpatialDims& dims) {
  Shape shape;
  for (int axis = 0; axis < dims.axes; ++axis) shape.push_back(dims[axis]);
  return shape;
}

SpatialDims uniform_dims(int n, int64_t v) {
  SpatialDims dims{.axes = n};
  for (int axis = 0; axis < n; ++axis) dims[axis] = v;
  return dims;
}

void write(const std::vector<double>& result, const Grad& grad) {
  if (!grad) return;
  float* to = grad.t.f32();
  for (size_t i = 0; i < result.size(); ++i) {
    const double before = grad.how == Write::accumulate ? to[i] : 0.0;
    to[i] = static_cast<float>(before + result[i]);
  }
}

}  // namespace crema::reference
