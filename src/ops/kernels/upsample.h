// Upsample: to the places that a pooling mask names, or every value repeated.
#pragma once

#include "ops/kernels/label.h"

namespace crema::CREMA_ISA {

/// y[plane][mask] = x for each plane of `inputs` values, in order: of equal places the last stays.
/// y holds zeros.
struct UnpoolForward {
  const float* x;
  const float* mask;
  float* y;
  Fault* fault;
  int64_t inputs, outputs;
  int32_t layer;
  CREMA_BOTH void operator()(int64_t plane) const {
    for (int64_t i = plane * inputs; i < (plane + 1) * inputs; ++i) {
      const int place = checked_label(mask[i], static_cast<int>(outputs), fault, layer, i);
      if (place >= 0) y[plane * outputs + place] = x[i];
    }
  }
};

/// dx (+)= dy at the place of each value.
struct UnpoolBackward {
  const float* mask;
  const float* dy;
  float* dx;
  int64_t inputs, outputs;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const int place = label_of(mask[i]);
    const bool is_inside = place >= 0 && place < outputs;
    const float g = is_inside ? dy[i / inputs * outputs + place] : 0.0f;
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

/// y[.., h, w] = x[.., h / scale, w / scale]; height and width are x's.
struct NearestForward {
  const float* x;
  float* y;
  int64_t height, width, scale;
  CREMA_BOTH void operator()(int64_t i) const {
    const int64_t wide = width * scale, tall = height * scale;
    const int64_t w = i % wide / scale, h = i / wide % tall / scale;
    y[i] = x[(i / (wide * tall) * height + h) * width + w];
  }
};

/// dx (+)= sum of dy over the scale x scale copies of each value.
struct NearestBackward {
  const float* dy;
  float* dx;
  int64_t height, width, scale;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const int64_t wide = width * scale;
    const int64_t w = i % width, row = i / width;
    float sum = 0;
    for (int64_t h = 0; h < scale; ++h) {
      for (int64_t v = 0; v < scale; ++v) sum += dy[(row * scale + h) * wide + w * scale + v];
    }
    dx[i] = accumulate ? dx[i] + sum : sum;
  }
};

}  // namespace crema::CREMA_ISA
