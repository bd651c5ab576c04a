// MVN: y = (x - mean) / (std + eps) per row of a [rows, cols] matrix.
#pragma once

#include <cmath>

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

/// mean[row], summed relative to the row's first element, so that a constant row's mean is that
/// constant exactly.
struct MvnMean {
  const float* x;
  float* mean;
  int64_t cols;
  CREMA_BOTH float operator()(int64_t row, int64_t col) const {
    return x[row * cols + col] - x[row * cols];
  }
  CREMA_BOTH void done(int64_t row, float sum) const {
    mean[row] = x[row * cols] + sum / static_cast<float>(cols);
  }
};

/// inverse[row] = 1 / (std + eps).
struct MvnInverse {
  const float *x, *mean;
  float* inverse;
  int64_t cols;
  float eps;
  CREMA_BOTH float operator()(int64_t row, int64_t col) const {
    const float d = x[row * cols + col] - mean[row];
    return d * d;
  }
  CREMA_BOTH void done(int64_t row, float sum) const {
    inverse[row] = 1.0f / (sqrtf(sum / static_cast<float>(cols)) + eps);
  }
};

/// inverse may be null: only the mean is taken off. y may be x.
struct MvnNormalize {
  const float *x, *mean, *inverse;
  float* y;
  Divider cols;
  CREMA_BOTH void operator()(int64_t i) const {
    const uint32_t row = cols.quotient(static_cast<uint32_t>(i));
    y[i] = (x[i] - mean[row]) * (inverse ? inverse[row] : 1.0f);
  }
};

/// mean[row] = mean of a * b over the row; b may be null (1).
struct MvnMeanProduct {
  const float *a, *b;
  float* mean;
  int64_t cols;
  CREMA_BOTH float operator()(int64_t row, int64_t col) const {
    const int64_t i = row * cols + col;
    return b ? a[i] * b[i] : a[i];
  }
  CREMA_BOTH void done(int64_t row, float sum) const { mean[row] = sum / static_cast<float>(cols); }
};

/// dx (+)= (dy - mean(dy) - y * mean(dy * y)) * inverse; without inverse dy - mean(dy). dx may be
/// dy.
struct MvnBackward {
  const float *y, *dy, *mean_dy, *mean_product, *inverse;
  float* dx;
  Divider cols;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const uint32_t row = cols.quotient(static_cast<uint32_t>(i));
    float value = dy[i] - mean_dy[row];
    if (inverse) value = (value - y[i] * mean_product[row]) * inverse[row];
    dx[i] = accumulate ? dx[i] + value : value;
  }
};

}  // namespace crema::CREMA_ISA
