// Bias: y = x + bias along the middle axis.
#pragma once

#include "ops/kernels/broadcast.h"

namespace crema::CREMA_ISA {

struct BiasForward {
  const float *x, *bias;
  float* y;
  MiddleAxis axis;
  CREMA_BOTH void operator()(int64_t i) const { y[i] = x[i] + bias[axis.of(i)]; }
};

/// dbias[row] (+)= sum of dy over the row's elements.
struct BiasGradient {
  const float* dy;
  float* dbias;
  MiddleAxis axis;
  bool accumulate;
  CREMA_BOTH float operator()(int64_t row, int64_t col) const { return dy[axis.element(row, col)]; }
  CREMA_BOTH void done(int64_t row, float sum) const {
    dbias[row] = accumulate ? dbias[row] + sum : sum;
  }
};

}  // namespace crema::CREMA_ISA
