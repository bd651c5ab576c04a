// Sums of two 16-bit blobs and their gradients, computed in f32.
#pragma once

#include "ops/kernel.h"
#include "ops/small_floats.h"

namespace crema::CREMA_ISA {

template <class T>
struct LowSumOf {
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

template <class T>
struct LowSumGradientOf {
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

/// y = act(ca * a + cb * b), as WeightedSum; y may be a or b.
struct WeightedSumBf16 {
  LowSumOf<Bf16> of;
  CREMA_BOTH void operator()(int64_t i) const { of(i); }
};
struct WeightedSumF16 {
  LowSumOf<F16> of;
  CREMA_BOTH void operator()(int64_t i) const { of(i); }
};

/// dx (+)= c * dy, masked by the activation where there is one, as WeightedGradient. y is read.
struct WeightedGradientBf16 {
  LowSumGradientOf<Bf16> of;
  CREMA_BOTH void operator()(int64_t i) const { of(i); }
};
struct WeightedGradientF16 {
  LowSumGradientOf<F16> of;
  CREMA_BOTH void operator()(int64_t i) const { of(i); }
};

}  // namespace crema::CREMA_ISA
