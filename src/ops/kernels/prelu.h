// PReLU (He et al. 2015, "Delving deep into rectifiers"): y = x > 0 ? x : slope * x, slope along
// the middle axis.
#pragma once

#include "ops/kernels/broadcast.h"

namespace crema::CREMA_ISA {

struct PreluForward {
  const float *x, *slope;
  float* y;
  MiddleAxis axis;
  CREMA_BOTH void operator()(int64_t i) const { y[i] = x[i] > 0 ? x[i] : slope[axis.of(i)] * x[i]; }
};

/// dx (+)= dy * (x > 0 ? 1 : slope); dx may be dy.
struct PreluBackward {
  const float *x, *slope, *dy;
  float* dx;
  MiddleAxis axis;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const float value = x[i] > 0 ? dy[i] : dy[i] * slope[axis.of(i)];
    dx[i] = accumulate ? dx[i] + value : value;
  }
};

/// dslope[row] (+)= sum of dy * min(x, 0) over the row's elements.
struct PreluGradient {
  const float *x, *dy;
  float* dslope;
  MiddleAxis axis;
  bool accumulate;
  CREMA_BOTH float operator()(int64_t row, int64_t col) const {
    const int64_t i = axis.element(row, col);
    return x[i] > 0 ? 0.0f : x[i] * dy[i];
  }
  CREMA_BOTH void done(int64_t row, float sum) const {
    dslope[row] = accumulate ? dslope[row] + sum : sum;
  }
};

}  // namespace crema::CREMA_ISA
