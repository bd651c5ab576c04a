// Dropout (Srivastava et al. 2014), inverted: kept elements grow by 1 / (1 - ratio). The mask is
// never stored: it is a function of (key, forward count, element), the element counted in N,C,H,W
// order whatever the layout.
#pragma once

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

/// Index i does elements 4i to 4i + 3 of n, which share one Philox block in nchw. Forward: x to y;
/// backward: dy to dx.
struct DropoutMask {
  const float* x;
  float* y;
  int64_t n;
  uint64_t key;
  const uint64_t* forward_count;
  float ratio, scale;
  bool accumulate;
  bool is_nhwc;
  Divider channels, plane;  // used in nhwc only
  CREMA_BOTH void operator()(int64_t i) const {
    const int64_t first = 4 * i, end = first + 4 < n ? first + 4 : n;
    const Philox4 block = philox(key, static_cast<uint64_t>(i), *forward_count);
    for (int64_t e = first; e < end; ++e) {
      const uint32_t word = is_nhwc ? scattered_word(e) : block.v[e - first];
      const float value = uniform01(word) >= ratio ? x[e] * scale : 0.0f;
      y[e] = accumulate ? y[e] + value : value;
    }
  }
  CREMA_BOTH uint32_t scattered_word(int64_t e) const {
    const uint32_t pixel = channels.quotient(static_cast<uint32_t>(e));
    const uint32_t c = static_cast<uint32_t>(e) - pixel * channels.divisor();
    const uint32_t image = plane.quotient(pixel);
    const uint32_t logical =
        (image * channels.divisor() + c) * plane.divisor() + pixel - image * plane.divisor();
    return philox(key, logical / 4, *forward_count).v[logical % 4];
  }
};

}  // namespace crema::CREMA_ISA
