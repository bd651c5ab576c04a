// The gradient of a bias, for plans that are plain C++; the kernels are in channel.h and norm.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "ops/ops.h"

namespace crema::cuda {

/// Bytes of scratch for bias_gradient() of a dy like this.
size_t bias_gradient_bytes(const TensorDesc& dy);

/// Enqueues db (+)= the sum of dy over all axes but 1.
void bias_gradient(const CTensor& dy, const Grad& db, void* scratch, cudaStream_t stream);

}  // namespace crema::cuda
