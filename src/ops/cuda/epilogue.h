// What follows a convolution in a kernel of its own, where the library cannot do it in the same
// one.
#pragma once

#include <cuda_runtime_api.h>

#include "ops/ops.h"

namespace crema::cuda {

/// Enqueues y = act(y + bias[channel] + residual); bias (f32) and residual (like y) may be empty. y
/// is f32, f16 or bf16 in either layout, of fewer than 2^31 elements.
void add_bias_and_activate(const Tensor& y, const CTensor& bias, const CTensor& residual,
                           const Act& act, cudaStream_t stream);

}  // namespace crema::cuda
