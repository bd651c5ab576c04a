// A channel map behind a convolution, folded into its weights and bias.
#pragma once

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

/// Weights of output k times scale[k]; each output has per_output weights.
struct FoldWeights {
  const float *w, *scale;
  float* folded;
  int64_t per_output;
  CREMA_BOTH void operator()(int64_t i) const { folded[i] = w[i] * scale[i / per_output]; }
};

/// bias may be null.
struct FoldBias {
  const float *bias, *scale, *shift;
  float* folded;
  CREMA_BOTH void operator()(int64_t k) const {
    folded[k] = (bias ? bias[k] * scale[k] : 0.0f) + shift[k];
  }
};

}  // namespace crema::CREMA_ISA
