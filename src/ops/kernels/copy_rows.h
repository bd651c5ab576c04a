// Copying between blobs whose rows have different lengths: Concat, Slice, Tile.
#pragma once

#include "ops/kernel.h"
#include "ops/small_floats.h"

namespace crema {
namespace CREMA_ISA {

/// dst row (+)= src row; a row is cut into equal pieces, one per index, so that neighbouring
/// indices touch neighbouring memory and the inner loop has a length worth unrolling.
template <class T>
struct CopyRowsOf {
  static constexpr int kWhole = 16;  // the longest piece
  const T* src;
  T* dst;
  int64_t src_stride, dst_stride;
  Divider pieces_per_row;
  int piece;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const uint32_t row = pieces_per_row.quotient(static_cast<uint32_t>(i));
    const int64_t column =
        int64_t{static_cast<uint32_t>(i) - row * pieces_per_row.divisor()} * piece;
    const T* from = src + row * src_stride + column;
    T* to = dst + row * dst_stride + column;
    // Read whole before it is written: no question whether the two overlap, so vectors.
    if (piece == kWhole) {
      T values[kWhole];
      for (int k = 0; k < kWhole; ++k) values[k] = accumulate ? sum(to[k], from[k]) : from[k];
      for (int k = 0; k < kWhole; ++k) to[k] = values[k];
    } else {
      for (int k = 0; k < piece; ++k) to[k] = accumulate ? sum(to[k], from[k]) : from[k];
    }
  }
  CREMA_BOTH static T sum(T a, T b) {
    T result;
    narrow_to(widen(a) + widen(b), result);
    return result;
  }
};

struct CopyRows {
  static constexpr int64_t kCost = 16;
  CopyRowsOf<float> of;
  CREMA_BOTH void operator()(int64_t i) const { of(i); }
};
struct CopyRowsBf16 {
  static constexpr int64_t kCost = 16;
  CopyRowsOf<Bf16> of;
  CREMA_BOTH void operator()(int64_t i) const { of(i); }
};
struct CopyRowsF16 {
  static constexpr int64_t kCost = 16;
  CopyRowsOf<F16> of;
  CREMA_BOTH void operator()(int64_t i) const { of(i); }
};

}  // namespace CREMA_ISA
}  // namespace crema
