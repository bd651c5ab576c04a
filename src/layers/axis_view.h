// A blob seen along one of its axes, as outer x size x inner in the order of its memory, and copies
// of a range of that axis: what Concat and Slice are made of, in either layout.
#pragma once

#include "ops/ops.h"

namespace crema {

struct AxisView {
  int64_t outer, size, inner;
};
/// In nhwc the channels are innermost and the other axes follow one another.
AxisView view_along(const TensorDesc& desc, int axis);

/// Whether the narrow blob's memory is the range of the wide one's that begins at `first`: one row
/// along the axis, so that nothing need be copied.
bool lies_in(const CTensor& narrow, const CTensor& wide, int64_t first, int axis);

/// The narrow blob (its whole axis) into or from the wide one, whose axis it covers from `first`
/// on.
void copy_to_range(Ops& ops, CTensor narrow, const Grad& wide, int64_t first, int axis);
void copy_from_range(Ops& ops, CTensor wide, int64_t first, int axis, const Grad& narrow);

}  // namespace crema
