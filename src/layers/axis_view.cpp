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

/// Elements of the narrow blob, of its rows, of the wide one's, and where they begin in those.
struct Rows {
  int64_t count, row, wide_row, offset;
  bool to_wide;
};

template <class Copy, class T>
void run_copy(Ops& ops, const CTensor& src, const Grad& dst, const Rows& rows) {
  const int piece = piece_of(rows.row, rows.wide_row, rows.offset);
  const int64_t src_at = rows.to_wide ? 0 : rows.offset, dst_at = rows.to_wide ? rows.offset : 0;
  run(ops,
      Copy{{.src = static_cast<const T*>(src.data) + src_at,
            .dst = static_cast<T*>(dst.t.data) + dst_at,
            .src_stride = rows.to_wide ? rows.row : rows.wide_row,
            .dst_stride = rows.to_wide ? rows.wide_row : rows.row,
            .pieces_per_row = Divider(rows.row / piece),
            .piece = piece,
            .accumulate = dst.how == Write::accumulate}},
      rows.count / piece);
}

void copy_rows(Ops& ops, const CTensor& src, const Grad& dst, const Rows& rows) {
  switch (dst.t.desc.dtype) {
    case DType::bf16:
      return run_copy<CopyRowsBf16, Bf16>(ops, src, dst, rows);
    case DType::f16:
      return run_copy<CopyRowsF16, F16>(ops, src, dst, rows);
    default:
      return run_copy<CopyRows, float>(ops, src, dst, rows);
  }
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
  const auto size = static_cast<int64_t>(size_of(wide.desc.dtype));
  return narrow.data == static_cast<const char*>(wide.data) + first * view.inner * size;
}

void copy_to_range(Ops& ops, CTensor narrow, const Grad& wide, int64_t first, int axis) {
  const AxisView from = view_along(narrow.desc, axis), to = view_along(wide.t.desc, axis);
  copy_rows(ops, narrow, wide,
            {.count = narrow.count(),
             .row = from.size * from.inner,
             .wide_row = to.size * to.inner,
             .offset = first * to.inner,
             .to_wide = true});
}

void copy_from_range(Ops& ops, CTensor wide, int64_t first, int axis, const Grad& narrow) {
  const AxisView from = view_along(wide.desc, axis), to = view_along(narrow.t.desc, axis);
  copy_rows(ops, wide, narrow,
            {.count = narrow.t.count(),
             .row = to.size * to.inner,
             .wide_row = from.size * from.inner,
             .offset = first * from.inner,
             .to_wide = false});
}

}  // namespace crema
