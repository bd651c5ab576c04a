// Sizes of pictures in two spatial axes: a picture of one axis has height 1.
#pragma once

#include "ops/ops.h"

namespace crema {

/// The entry of a spatial axis (0: height, 1: width); missing where a height is not there.
inline int64_t along(const SpatialDims& dims, int axis, int64_t missing) {
  if (dims.axes == 2) return dims[axis];
  return axis == 0 ? missing : dims[0];
}

inline int64_t size_along(const Shape& shape, int axis) {
  if (shape.axes() == 4) return shape[axis + 2];
  return axis == 0 ? 1 : shape[2];
}

}  // namespace crema
