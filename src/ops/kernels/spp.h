// SPP: the levels of a spatial pyramid side by side in each row of the top.
#pragma once

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

/// Copies a [rows, length] block between two matrices with rows of their own lengths.
struct SppCopy {
  const float* from;  // at the block's first element
  float* to;
  int64_t from_row, to_row;  // elements from one row to the next
  Divider length;
  CREMA_BOTH void operator()(int64_t i) const {
    const int64_t row = length.quotient(static_cast<uint32_t>(i));
    const int64_t col = i - row * length.divisor();
    to[row * to_row + col] = from[row * from_row + col];
  }
};

}  // namespace crema::CREMA_ISA
