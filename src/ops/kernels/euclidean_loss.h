// EuclideanLoss: half the mean squared distance.
#pragma once

#include "ops/kernel.h"

namespace crema {
namespace CREMA_ISA {

/// One row: loss = scale * sum (a - b)^2.
struct SquaredDistance {
  const float* a;
  const float* b;
  float* loss;
  float scale;
  CREMA_BOTH float operator()(int64_t, int64_t i) const {
    const float d = a[i] - b[i];
    return d * d;
  }
  CREMA_BOTH void done(int64_t, float sum) const { *loss = scale * sum; }
};

/// dx (+)= scale * dloss * (a - b).
struct DistanceGradient {
  const float* a;
  const float* b;
  const float* dloss;
  float* dx;
  float scale;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const float g = scale * *dloss * (a[i] - b[i]);
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

}  // namespace CREMA_ISA
}  // namespace crema
