// Steps of AdamW and LAMB beside Adam's own: decay that the gradient does not know of, and a step
// whose length is set afterwards.
#pragma once

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

/// w -= rate * factor * w.
struct DecayWeights {
  float* w;
  const float* rate;
  float factor;
  CREMA_BOTH void operator()(int64_t i) const { w[i] -= *rate * factor * w[i]; }
};

/// u = rate * decay * w - u, where u holds minus rate times Adam's direction.
struct LambDirection {
  const float* w;
  float* u;
  const float* rate;
  float decay;
  CREMA_BOTH void operator()(int64_t i) const { u[i] = *rate * decay * w[i] - u[i]; }
};

/// w -= scale * u, and u becomes 0 for the next step.
struct LambStep {
  float* w;
  float* u;
  float scale;
  CREMA_BOTH void operator()(int64_t i) const {
    w[i] -= scale * u[i];
    u[i] = 0;
  }
};

}  // namespace crema::CREMA_ISA
