// The step scalars' way to the device.
#pragma once

#include <cuda_runtime_api.h>

#include "ops/ops.h"

namespace crema::cuda {

/// Enqueues *to = step; the value travels with the launch, so no host memory has to stay.
void store_step(const StepScalars& step, StepScalars* to, cudaStream_t stream);

}  // namespace crema::cuda
