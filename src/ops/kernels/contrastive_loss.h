// ContrastiveLoss (Hadsell et al., "Dimensionality reduction by learning an invariant mapping",
// 2006).
#pragma once

#include <cmath>

#include "ops/kernels/label.h"

namespace crema {
namespace CREMA_ISA {

/// squared[sample] = sum (a - b)^2.
struct PairDistances {
  const float* a;
  const float* b;
  float* squared;
  int64_t cols;
  CREMA_BOTH float operator()(int64_t row, int64_t col) const {
    const float d = a[row * cols + col] - b[row * cols + col];
    return d * d;
  }
  CREMA_BOTH void done(int64_t row, float sum) const { squared[row] = sum; }
};

/// One row over the samples: d^2 for similar pairs, max(margin - d, 0)^2 (legacy: max(margin - d^2,
/// 0)) for the others, times scale.
struct ContrastiveLoss {
  const float* squared;
  const float* similar;
  float* loss;
  float margin, scale;
  bool legacy;
  CREMA_BOTH float operator()(int64_t, int64_t i) const {
    if (label_of(similar[i]) != 0) return squared[i];
    const float gap = margin - (legacy ? squared[i] : std::sqrt(squared[i]));
    if (gap < 0) return 0;
    return legacy ? gap : gap * gap;
  }
  CREMA_BOTH void done(int64_t, float sum) const { *loss = scale * sum; }
};

/// dx (+)= scale * dloss * (a - b) for similar pairs; for the others pushed apart while nearer than
/// margin.
struct ContrastiveGradient {
  const float* a;
  const float* b;
  const float* squared;
  const float* similar;
  const float* dloss;
  float* dx;
  Divider cols;
  float margin, scale;
  bool legacy, accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const uint32_t row = cols.quotient(static_cast<uint32_t>(i));
    float factor = 1;
    if (label_of(similar[row]) == 0) {
      const float distance = std::sqrt(squared[row]);
      const float gap = margin - (legacy ? squared[row] : distance);
      factor = gap > 0 ? (legacy ? -1.0f : -gap / (distance + 1e-4f)) : 0.0f;
    }
    const float g = scale * *dloss * factor * (a[i] - b[i]);
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

}  // namespace CREMA_ISA
}  // namespace crema
