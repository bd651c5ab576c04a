// Sums of squares over pieces of a tensor: the parts of a global L2 norm. Piece r is x[r * piece,
// (r + 1) * piece), the last one may be shorter.
#pragma once

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

struct SumOfSquares {
  const float* x;
  float* sums;  // one per piece
  int64_t count;
  int64_t piece;

  CREMA_BOTH float operator()(int64_t row, int64_t col) const {
    const int64_t i = row * piece + col;
    return i < count ? x[i] * x[i] : 0.0f;
  }
  CREMA_BOTH void done(int64_t row, float sum) const { sums[row] = sum; }
};

}  // namespace crema::CREMA_ISA
