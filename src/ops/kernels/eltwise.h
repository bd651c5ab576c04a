// Eltwise: sums, products and maxima over several blobs of one shape.
#pragma once

#include "ops/kernel.h"
#include "ops/small_floats.h"

namespace crema {
namespace CREMA_ISA {

/// As many blobs as a layer's traits can name.
constexpr int kMaxEltwise = 64;

/// y = act(ca * a + cb * b), in f32; y may be a or b. The activation max(v, 0) + slope * min(v, 0).
template <class T>
struct WeightedSumOf {
  const T* a;
  const T* b;
  T* y;
  float ca, cb, slope;
  bool relu;
  CREMA_BOTH void operator()(int64_t i) const {
    const float v = ca * widen(a[i]) + cb * widen(b[i]);
    narrow_to(relu && v < 0 ? slope * v : v, y[i]);
  }
};

struct WeightedSum {
  WeightedSumOf<float> of;
  CREMA_BOTH void operator()(int64_t i) const { of(i); }
};
struct WeightedSumBf16 {
  WeightedSumOf<Bf16> of;
  CREMA_BOTH void operator()(int64_t i) const { of(i); }
};
struct WeightedSumF16 {
  WeightedSumOf<F16> of;
  CREMA_BOTH void operator()(int64_t i) const { of(i); }
};

/// dx (+)= c * dy, in f32, masked by the activation where there is one. y is read, so that the loop
/// has no branch: dy serves where there is no activation.
template <class T>
struct WeightedGradientOf {
  const T* dy;
  const T* y;
  T* dx;
  float c, slope;
  bool relu, accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const float g = c * widen(dy[i]) * (relu && !(widen(y[i]) > 0) ? slope : 1.0f);
    narrow_to(accumulate ? widen(dx[i]) + g : g, dx[i]);
  }
};

struct WeightedGradient {
  WeightedGradientOf<float> of;
  CREMA_BOTH void operator()(int64_t i) const { of(i); }
};
struct WeightedGradientBf16 {
  WeightedGradientOf<Bf16> of;
  CREMA_BOTH void operator()(int64_t i) const { of(i); }
};
struct WeightedGradientF16 {
  WeightedGradientOf<F16> of;
  CREMA_BOTH void operator()(int64_t i) const { of(i); }
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
