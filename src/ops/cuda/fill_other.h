// Filling tensors that are not f32.
#pragma once

#include <cuda_runtime_api.h>

#include "ops/ops.h"

namespace crema::cuda {

/// Enqueues dst = value, rounded to dst's type.
void fill_other(float value, const Tensor& dst, cudaStream_t stream);

}  // namespace crema::cuda
