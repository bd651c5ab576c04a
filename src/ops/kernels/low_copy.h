// Copying between 16-bit blobs whose rows have different lengths: Concat, Slice.
#pragma once

#include "ops/kernel.h"
#include "ops/small_floats.h"

namespace crema::CREMA_ISA {

/// dst row (+)= src row, cut into equal pieces as in CopyRows; bits are copied as they are.
struct LowCopyRows {
  static constexpr int64_t kCost = 16;
  static constexpr int kWhole = 16;  // the longest piece
  const uint16_t* src;
  uint16_t* dst;
  int64_t src_stride, dst_stride;
  Divider pieces_per_row;
  int piece;
  bool accumulate, is_bf16;
  CREMA_BOTH void operator()(int64_t i) const {
    const uint32_t row = pieces_per_row.quotient(static_cast<uint32_t>(i));
    const int64_t column =
        int64_t{static_cast<uint32_t>(i) - row * pieces_per_row.divisor()} * piece;
    const uint16_t* from = src + row * src_stride + column;
    uint16_t* to = dst + row * dst_stride + column;
    if (accumulate) {
      for (int k = 0; k < piece; ++k)
        to[k] = is_bf16 ? sum<Bf16>(to[k], from[k]) : sum<F16>(to[k], from[k]);
    } else if (piece == kWhole) {
      uint16_t values[kWhole];
      for (int k = 0; k < kWhole; ++k) values[k] = from[k];
      for (int k = 0; k < kWhole; ++k) to[k] = values[k];
    } else {
      for (int k = 0; k < piece; ++k) to[k] = from[k];
    }
  }
  template <class T>
  CREMA_BOTH static uint16_t sum(uint16_t a, uint16_t b) {
    T result;
    narrow_to(widen(T{a}) + widen(T{b}), result);
    return result.bits;
  }
};

}  // namespace crema::CREMA_ISA
