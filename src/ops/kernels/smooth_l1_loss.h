// SmoothL1Loss (Girshick, "Fast R-CNN", 2015) and L1Loss.
#pragma once

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

/// f(d) = sigma^2 d^2 / 2 where |d| < 1 / sigma^2, else |d| - 1 / (2 sigma^2); sigma2 is sigma^2.
CREMA_BOTH inline float smooth_l1(float d, float sigma2) {
  const float size = d < 0 ? -d : d;
  return size < 1 / sigma2 ? 0.5f * sigma2 * d * d : size - 0.5f / sigma2;
}
CREMA_BOTH inline float smooth_l1_slope(float d, float sigma2) {
  const float size = d < 0 ? -d : d;
  return size < 1 / sigma2 ? sigma2 * d : (d > 0 ? 1.0f : -1.0f);
}

/// One row: scale * sum of outside * f(inside * (a - b)); inside and outside may be null (1).
struct SmoothL1Loss {
  const float* a;
  const float* b;
  const float* inside;
  const float* outside;
  float* loss;
  float sigma2, scale;
  CREMA_BOTH float operator()(int64_t, int64_t i) const {
    const float d = (a[i] - b[i]) * (inside ? inside[i] : 1.0f);
    return (outside ? outside[i] : 1.0f) * smooth_l1(d, sigma2);
  }
  CREMA_BOTH void done(int64_t, float sum) const { *loss = scale * sum; }
};

/// dx (+)= scale * dloss * outside * inside * f'(inside * (a - b)).
struct SmoothL1Gradient {
  const float* a;
  const float* b;
  const float* inside;
  const float* outside;
  const float* dloss;
  float* dx;
  float sigma2, scale;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const float in = inside ? inside[i] : 1.0f, out = outside ? outside[i] : 1.0f;
    const float g = scale * *dloss * out * in * smooth_l1_slope((a[i] - b[i]) * in, sigma2);
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

/// One row: scale * sum |a - b|.
struct L1Loss {
  const float* a;
  const float* b;
  float* loss;
  float scale;
  CREMA_BOTH float operator()(int64_t, int64_t i) const {
    const float d = a[i] - b[i];
    return d < 0 ? -d : d;
  }
  CREMA_BOTH void done(int64_t, float sum) const { *loss = scale * sum; }
};

/// dx (+)= scale * dloss * sign(a - b).
struct L1Gradient {
  const float* a;
  const float* b;
  const float* dloss;
  float* dx;
  float scale;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const float d = a[i] - b[i];
    const float g = scale * *dloss * (d > 0 ? 1.0f : (d < 0 ? -1.0f : 0.0f));
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

}  // namespace crema::CREMA_ISA
