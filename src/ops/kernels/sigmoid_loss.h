// Cross-entropy of sigmoid(x) against targets, in the form that neither overflows nor cancels.
#pragma once

#include <cmath>

#include "ops/kernels/label.h"

namespace crema {
namespace CREMA_ISA {

/// One row: loss = sum of max(x, 0) - x * t + log(1 + e^-|x|), over divisor.
struct SigmoidLogLoss {
  static constexpr int64_t kCost = 32;
  const float* x;
  const float* target;
  const float* divisor;
  float* loss;
  int ignored;
  bool ignores;
  CREMA_BOTH float operator()(int64_t, int64_t i) const {
    if (ignores && label_of(target[i]) == ignored) return 0;
    const float v = x[i];
    return (v > 0 ? v : 0.0f) - v * target[i] + std::log1p(std::exp(v > 0 ? -v : v));
  }
  CREMA_BOTH void done(int64_t, float sum) const { *loss = sum / *divisor; }
};

/// dx (+)= (sigmoid(x) - t) * dloss / divisor; 0 where the target is ignored.
struct SigmoidLossGradient {
  static constexpr int64_t kCost = 16;
  const float* x;
  const float* target;
  const float* divisor;
  const float* dloss;
  float* dx;
  int ignored;
  bool ignores, accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    float g = (1 / (1 + std::exp(-x[i])) - target[i]) * (*dloss / *divisor);
    if (ignores && label_of(target[i]) == ignored) g = 0;
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

}  // namespace CREMA_ISA
}  // namespace crema
