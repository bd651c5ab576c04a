// Scale: y = x * scale + bias along the middle axis.
#pragma once

#include "ops/kernels/broadcast.h"

namespace crema::CREMA_ISA {

/// bias may be null.
struct ScaleForward {
  const float *x, *scale, *bias;
  float* y;
  MiddleAxis axis;
  CREMA_BOTH void operator()(int64_t i) const {
    const int64_t c = axis.of(i);
    y[i] = x[i] * scale[c] + (bias ? bias[c] : 0.0f);
  }
};

/// dx (+)= dy * scale; dx may be dy.
struct ScaleBackward {
  const float *dy, *scale;
  float* dx;
  MiddleAxis axis;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const float value = dy[i] * scale[axis.of(i)];
    dx[i] = accumulate ? dx[i] + value : value;
  }
};

/// dscale[row] (+)= sum of dy * x over the row's elements.
struct ScaleGradient {
  const float *x, *dy;
  float* dscale;
  MiddleAxis axis;
  bool accumulate;
  CREMA_BOTH float operator()(int64_t row, int64_t col) const {
    const int64_t i = axis.element(row, col);
    return x[i] * dy[i];
  }
  CREMA_BOTH void done(int64_t row, float sum) const {
    dscale[row] = accumulate ? dscale[row] + sum : sum;
  }
};

}  // namespace crema::CREMA_ISA
