// Eltwise: sums, products and maxima over several blobs of one shape.
#pragma once

#include "ops/kernel.h"

namespace crema {
namespace CREMA_ISA {

/// As many blobs as a layer's traits can name.
constexpr int kMaxEltwise = 64;

/// y = act(ca * a + cb * b); y may be a or b. The activation max(v, 0) + slope * min(v, 0).
struct WeightedSum {
  const float* a;
  const float* b;
  float* y;
  float ca, cb, slope;
  bool relu;
  CREMA_BOTH void operator()(int64_t i) const {
    const float v = ca * a[i] + cb * b[i];
    y[i] = relu && v < 0 ? slope * v : v;
  }
};

/// dx (+)= c * dy, masked by the activation where there is one.
struct WeightedGradient {
  const float* dy;
  const float* y;
  float* dx;
  float c, slope;
  bool relu, accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const float g = c * dy[i] * (relu && !(y[i] > 0) ? slope : 1.0f);
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

/// y (+)= factor (where given) * the product of all x but x[skip].
struct ProductOf {
  const float* x[kMaxEltwise];
  const float* factor;
  float* y;
  int count, skip;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    float product = factor ? factor[i] : 1.0f;
    for (int k = 0; k < count; ++k) {
      if (k != skip) product *= x[k][i];
    }
    y[i] = accumulate ? y[i] + product : product;
  }
};

/// dx (+)= dy * y / x.
struct RatioGradient {
  const float* x;
  const float* y;
  const float* dy;
  float* dx;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const float g = y[i] / x[i] * dy[i];
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

/// y = the greatest of x; winner (where given) = whose it is. Of x[0] and x[1] the latter wins
/// ties, a further one must be strictly greater.
struct MaxOf {
  const float* x[kMaxEltwise];
  float* y;
  uint8_t* winner;
  int count;
  CREMA_BOTH void operator()(int64_t i) const {
    int best = x[0][i] > x[1][i] ? 0 : 1;
    float value = x[best][i];
    for (int k = 2; k < count; ++k) {
      if (x[k][i] > value) {
        value = x[k][i];
        best = k;
      }
    }
    y[i] = value;
    if (winner) winner[i] = static_cast<uint8_t>(best);
  }
};

/// dx (+)= dy where x[index] was the greatest.
struct MaxGradient {
  const uint8_t* winner;
  const float* dy;
  float* dx;
  int index;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const float g = winner[i] == index ? dy[i] : 0.0f;
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

}  // namespace CREMA_ISA
}  // namespace crema
