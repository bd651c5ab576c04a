// Spatial dropout (Tompson et al. 2015), inverted: whole planes are kept, grown by 1 / (1 - ratio),
// or dropped. The draw is a function of (key, forward count, plane).
#pragma once

#include "ops/functors.h"
#include "ops/kernel.h"

namespace crema::CREMA_ISA {

/// Forward: x to y; backward: dy to dx. `plane`: values of one channel.
struct SpatialDropoutMask {
  const float* x;
  float* y;
  uint64_t key;
  const uint64_t* forward_count;
  float ratio, scale;
  bool accumulate;
  Divider plane;
  CREMA_BOTH void operator()(int64_t i) const {
    const uint32_t channel = plane.quotient(static_cast<uint32_t>(i));
    const Philox4 block = philox(key, channel / 4, *forward_count);
    const float value = uniform01(block.v[channel % 4]) >= ratio ? x[i] * scale : 0.0F;
    y[i] = accumulate ? y[i] + value : value;
  }
};

}  // namespace crema::CREMA_ISA
