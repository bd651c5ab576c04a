// Sums of two 16-bit blobs and their gradients, computed in f32. An index does eight elements, 16
// bytes.
#pragma once

#include "ops/kernel.h"
#include "ops/small_floats.h"

namespace crema::CREMA_ISA {

constexpr int64_t kLowRun = 8;

template <class T>
struct alignas(16) EightOf {
  T v[kLowRun];
};

/// Elements [8i, 8i + 8) of blobs of n; pointers at multiples of 16 bytes.
template <class T>
struct LowRun {
  int64_t begin, count;
  CREMA_BOTH LowRun(int64_t i, int64_t n)
      : begin(kLowRun * i), count(n - begin < kLowRun ? n - begin : kLowRun) {}
  CREMA_BOTH EightOf<T> load(const void* from) const {
    const T* at = static_cast<const T*>(from) + begin;
    if (count == kLowRun) return *reinterpret_cast<const EightOf<T>*>(at);
    EightOf<T> run{};
    for (int64_t k = 0; k < count; ++k) run.v[k] = at[k];
    return run;
  }
  CREMA_BOTH void store(void* to, const EightOf<T>& run) const {
    T* at = static_cast<T*>(to) + begin;
    if (count == kLowRun) {
      *reinterpret_cast<EightOf<T>*>(at) = run;
      return;
    }
    for (int64_t k = 0; k < count; ++k) at[k] = run.v[k];
  }
};

/// y = act(ca * a + cb * b); y may be a or b. The activation max(v, 0) + slope * min(v, 0).
struct LowWeightedSum {
  static constexpr int64_t kCost = kLowRun;
  const void* a;
  const void* b;
  void* y;
  int64_t n;
  float ca, cb, slope;
  bool relu, is_bf16;
  CREMA_BOTH void operator()(int64_t i) const { is_bf16 ? run<Bf16>(i) : run<F16>(i); }
  template <class T>
  CREMA_BOTH void run(int64_t i) const {
    const LowRun<T> at(i, n);
    EightOf<T> x = at.load(a), other = at.load(b);
    for (int k = 0; k < kLowRun; ++k) {
      const float v = ca * widen(x.v[k]) + cb * widen(other.v[k]);
      narrow_to(relu && v < 0 ? slope * v : v, x.v[k]);
    }
    at.store(y, x);
  }
};

/// dx (+)= c * dy, masked by the activation where there is one.
struct LowWeightedGradient {
  static constexpr int64_t kCost = kLowRun;
  const void* dy;
  const void* y;
  void* dx;
  int64_t n;
  float c, slope;
  bool relu, accumulate, is_bf16;
  CREMA_BOTH void operator()(int64_t i) const { is_bf16 ? run<Bf16>(i) : run<F16>(i); }
  template <class T>
  CREMA_BOTH void run(int64_t i) const {
    const LowRun<T> at(i, n);
    EightOf<T> g = at.load(dy), out = at.load(relu ? y : dy), sum{};
    if (accumulate) sum = at.load(dx);
    for (int k = 0; k < kLowRun; ++k) {
      const float v = c * widen(g.v[k]) * (relu && !(widen(out.v[k]) > 0) ? slope : 1.0f);
      narrow_to(accumulate ? widen(sum.v[k]) + v : v, g.v[k]);
    }
    at.store(dx, g);
  }
};

}  // namespace crema::CREMA_ISA
