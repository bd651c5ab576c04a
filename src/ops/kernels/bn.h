// BN of forks: the running statistics as plain averages.
#pragma once

#include <cmath>

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

/// running = momentum * running + (1 - momentum) * batch, for mean and variance.
struct BnRunning {
  const float* mean;
  const float* variance;
  float* running_mean;
  float* running_variance;
  float momentum;
  CREMA_BOTH void operator()(int64_t c) const {
    running_mean[c] = momentum * running_mean[c] + (1 - momentum) * mean[c];
    running_variance[c] = momentum * running_variance[c] + (1 - momentum) * variance[c];
  }
};

/// slope (x - mean) / sqrt(variance + eps) + bias as scale x + shift; mean and variance may be null
/// (0 and 1, without eps).
struct BnMap {
  const float* slope;
  const float* bias;
  const float* mean;
  const float* variance;
  float* scale;
  float* shift;
  float eps;
  CREMA_BOTH void operator()(int64_t c) const {
    scale[c] = variance ? slope[c] / std::sqrt(variance[c] + eps) : slope[c];
    shift[c] = bias[c] - (mean ? mean[c] * scale[c] : 0.0f);
  }
};

}  // namespace crema::CREMA_ISA
