// Rows of a blob picked by an index list, and their gradients put back.
#pragma once

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

/// Row r of y is row index[r] of x.
struct FilterRows {
  const float* x;
  const int32_t* index;
  float* y;
  int64_t row;
  CREMA_BOTH void operator()(int64_t i) const { y[i] = x[index[i / row] * row + i % row]; }
};

/// Adds row r of dy to row index[r] of dx; no row is named twice.
struct FilterRowsBack {
  const float* dy;
  const int32_t* index;
  float* dx;
  int64_t row;
  CREMA_BOTH void operator()(int64_t i) const { dx[index[i / row] * row + i % row] += dy[i]; }
};

}  // namespace crema::CREMA_ISA
