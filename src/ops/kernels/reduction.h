// Reduction: each row of a blob to one number, and the gradient back over the row.
#pragma once

#include "ops/kernel.h"

namespace crema {
namespace CREMA_ISA {

enum class ReduceKind : uint8_t { sum, asum, sumsq };

/// y[row] = coeff * sum of x, |x| or x^2 over the row.
struct ReductionRows {
  const float* x;
  float* y;
  int64_t cols;
  float coeff;
  ReduceKind kind;
  CREMA_BOTH float operator()(int64_t row, int64_t col) const {
    const float v = x[row * cols + col];
    return kind == ReduceKind::sum ? v : kind == ReduceKind::sumsq ? v * v : v < 0 ? -v : v;
  }
  CREMA_BOTH void done(int64_t row, float sum) const { y[row] = coeff * sum; }
};

/// dx (+)= coeff * dy[row] * (1, the sign of x or 2x); x only for the latter two.
struct ReductionGradient {
  const float* x;
  const float* dy;
  float* dx;
  Divider cols;
  float coeff;
  ReduceKind kind;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    float g = coeff * dy[cols.quotient(static_cast<uint32_t>(i))];
    if (kind == ReduceKind::asum) g *= static_cast<float>((x[i] > 0) - (x[i] < 0));
    if (kind == ReduceKind::sumsq) g *= 2 * x[i];
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

}  // namespace CREMA_ISA
}  // namespace crema
