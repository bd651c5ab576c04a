// Rows of the narrow blob lie within rows of the wide one; both have the same number of rows.
#include "layers/axis_view.h"

#include <algorithm>
#include <numeric>

#include "ops/kernels/copy_rows.h"

namespace crema {
namespace {

/// The greatest power of two up to 16 that divides all three lengths.
int piece_of(int64_t narrow_row, int64_t wide_row, int64_t offset) {
  const int64_t common = std::gcd(std::gcd(narrow_row, wide_row), std::gcd(offset, int64_t{16}));
  return static_cast<int>(common & -common);
}

}  // namespace

AxisView view_along(const TensorDesc& desc, int axis) {
  const Shape& shape = desc.shape;
  if (desc.layout == Layout::nchw || shape.axes() < 3 || axis == 0) {
    return {shape.count(0, axis), shape[axis], shape.count(axis + 1)};
  }
  if (axis == 1) return {shape[0] * shape.count(2), shape[1], 1};
  return {shape[0] * shape.count(2, axis), shape[axis], shape.count(axis + 1) * shape[1]};
}

bool lies_in(const CTensor& narrow, const CTensor& wide, int64_t first, int axis) {
  const AxisView view = view_along(wide.desc, axis);
  if (view.outer != 1 && narrow.count() != wide.count()) return false;
  return narrow.f32() == wide.f32() + first * view.inner;
}

void copy_to_range(Ops& ops, CTensor narrow, const Grad& wide, int64_t first, int axis) {
  const AxisView from = view_along(narrow.desc, axis), to = view_along(wide.t.desc, axis);
  const int64_t row = from.size * from.inner, wide_row = to.size * to.inner;
  const int piece = piece_of(row, wide_row, first * to.inner);
  run(ops,
      CopyRows{.src = narrow.f32(),
               .dst = wide.t.f32() + first * to.inner,
               .src_stride = row,
               .dst_stride = wide_row,
               .pieces_per_row = Divider(row / piece),
               .piece = piece,
               .accumulate = wide.how == Write::accumulate},
      narrow.count() / piece);
}

void copy_from_range(Ops& ops, CTensor wide, int64_t first, int axis, const Grad& narrow) {
  const AxisView from = view_along(wide.desc, axis), to = view_along(narrow.t.desc, axis);
  const int64_t row = to.size * to.inner, wide_row = from.size * from.inner;
  const int piece = piece_of(row, wide_row, first * from.inner);
  run(ops,
      CopyRows{.src = wide.f32() + first * from.inner,
               .dst = narrow.t.f32(),
               .src_stride = wide_row,
               .dst_stride = row,
               .pieces_per_row = Divider(row / piece),
               .piece = piece,
               .accumulate = narrow.how == Write::accumulate},
      narrow.t.count() / piece);
}

}  // namespace crema
