// The running statistics of BatchNorm: sums of means and variances that decay by `fraction` per
// step, and the sum of weights (the factor) that they are divided by.
#pragma once

#include <cmath>

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

/// Stored sums into statistics; all 0 while the factor is.
struct BatchNormStored {
  const float *mean_sum, *variance_sum, *factor;
  float *mean, *variance;
  CREMA_BOTH void operator()(int64_t c) const {
    const float inverse = *factor == 0 ? 0.0f : 1.0f / *factor;
    mean[c] = mean_sum[c] * inverse;
    variance[c] = variance_sum[c] * inverse;
  }
};

/// What stored statistics and, where given, gamma and beta make of x: scale * x + shift.
struct BatchNormMap {
  const float *mean_sum, *variance_sum, *factor, *gamma, *beta;
  float *scale, *shift;
  float eps;
  CREMA_BOTH void operator()(int64_t c) const {
    const float inverse = *factor == 0 ? 0.0f : 1.0f / *factor;
    const float a = (gamma ? gamma[c] : 1.0f) / sqrtf(variance_sum[c] * inverse + eps);
    scale[c] = a;
    shift[c] = (beta ? beta[c] : 0.0f) - a * mean_sum[c] * inverse;
  }
};

/// One step; unbias = m / (m - 1) makes the batch's variance the sample variance. Index 0 keeps the
/// factor too.
struct BatchNormUpdate {
  const float *mean, *variance;
  float *mean_sum, *variance_sum, *factor;
  float fraction, unbias;
  CREMA_BOTH void operator()(int64_t c) const {
    mean_sum[c] = mean_sum[c] * fraction + mean[c];
    variance_sum[c] = variance_sum[c] * fraction + variance[c] * unbias;
    if (c == 0) *factor = *factor * fraction + 1.0f;
  }
};

}  // namespace crema::CREMA_ISA
