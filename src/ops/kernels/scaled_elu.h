// ELU with a factor: y = lambda * (x > 0 ? x : alpha * (e^x - 1)).
#pragma once

#include "ops/functors.h"
#include "ops/kernel.h"
#include "ops/tensor.h"

namespace crema::CREMA_ISA {

struct ScaledElu {
  const float* x;
  float* y;
  float alpha, lambda;
  CREMA_BOTH void operator()(int64_t i) const { y[i] = lambda * EluOf{alpha}(x[i]); }
};

struct ScaledEluBackward {
  const float* x;
  const float* dy;
  float* dx;
  float alpha, lambda;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const float g = dy[i] * lambda * (x[i] > 0 ? 1.0f : alpha * exp_of(x[i]));
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

}  // namespace crema::CREMA_ISA
