// The gradient that backward begins with: a loss's weight times the loss scale, which a recorded
// pass reads from device memory.
#pragma once

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

struct LossGradient {
  float* dy;
  float weight;
  const float* loss_scale;
  CREMA_BOTH void operator()(int64_t i) const { dy[i] = weight * *loss_scale; }
};

}  // namespace crema::CREMA_ISA
