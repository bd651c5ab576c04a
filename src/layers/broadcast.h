// Where a coefficient blob of Scale, Bias or PReLU lies on bottom 0: axes [axis, axis + its own
// axes).
#pragma once

#include "layers/checks.h"
#include "layers/common.h"
#include "ops/kernels/broadcast.h"

namespace crema {

struct Broadcast {
  int axis = 0;       // the first axis of bottom 0 that the coefficients lie on
  Shape shape;        // of the coefficients
  int64_t count = 1;  // of them

  /// Coefficients that work in any layout: one per channel, or one in all.
  bool any_layout() const { return count == 1 || (axis == 1 && shape.axes() == 1); }

  MiddleAxis middle(const TensorDesc& x) const {
    if (count == 1) return {1, x.count()};
    if (x.layout == Layout::nhwc) return {count, 1};
    return {count, x.shape.count(axis + shape.axes())};
  }
};

/// From the fields axis and num_axes (-1: to the last axis). Throws Error when bottom has no such
/// axes.
Broadcast read_broadcast(const Shape& bottom, int axis, int num_axes);
/// For a second bottom: it must have the sizes of the first from `axis` on.
Broadcast match_broadcast(const LayerParameter& param, const Shapes& bottom, int axis);

}  // namespace crema
