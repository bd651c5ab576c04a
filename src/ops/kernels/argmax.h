// ArgMax: the k largest of each row, largest first.
#pragma once

#include "ops/kernel.h"

namespace crema {
namespace CREMA_ISA {

/// The order of two entries: larger values first, of equal ones the larger index, NaN last.
CREMA_BOTH inline bool is_ahead(float a, int i, float b, int j) {
  if ((a != a) != (b != b)) return b != b;
  if (a == a && a != b) return a > b;
  return i > j;
}

/// For position (outer, inner) of a blob seen as outer x size x inner: writes rank r to
/// y[outer * y_stride + r * inner_count + inner], indices and, offset by values_at, values.
struct ArgMaxRows {
  static constexpr int64_t kCost = 256;
  const float* x;
  float* y;
  int64_t inner, y_stride, values_at;
  int size, top_k;
  bool indices, values;
  CREMA_BOTH void operator()(int64_t position) const {
    const int64_t outer = position / inner, place = position - outer * inner;
    const float* row = x + outer * size * inner + place;
    float* out = y + outer * y_stride + place;
    int last = -1;
    for (int rank = 0; rank < top_k; ++rank) {
      int best = -1;
      for (int k = 0; k < size; ++k) {
        const float v = row[k * inner];
        if (last >= 0 && !is_ahead(row[last * inner], last, v, k)) continue;
        if (best < 0 || is_ahead(v, k, row[best * inner], best)) best = k;
      }
      if (indices) out[rank * inner] = static_cast<float>(best);
      if (values) out[values_at + rank * inner] = row[best * inner];
      last = best;
    }
  }
};

}  // namespace CREMA_ISA
}  // namespace crema
