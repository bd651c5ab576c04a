// Permute and its kin: every element of one blob has its place in another, given by steps per axis.
#pragma once

#include "ops/kernels/crop.h"

namespace crema::CREMA_ISA {

/// y[i] (+)= x[place of i].
struct PermuteGather {
  const float* x;
  float* y;
  CropBlock place;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const float v = x[place.place(i)];
    y[i] = accumulate ? y[i] + v : v;
  }
};

/// y[place of i] (+)= x[i]; no two elements have the same place.
struct PermuteScatter {
  const float* x;
  float* y;
  CropBlock place;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    float& v = y[place.place(i)];
    v = accumulate ? v + x[i] : x[i];
  }
};

}  // namespace crema::CREMA_ISA
