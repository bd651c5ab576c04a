// Convolution by kernels of our own, for what cuDNN has no plan for (more than three spatial axes,
// ...): right before fast.
#pragma once

#include "ops/cuda/cuda_ops.h"

namespace crema::cuda {

/// f32, any number of spatial axes.
std::unique_ptr<ConvPlan> make_direct_conv(CudaOps& ops, const ConvDesc& desc);

}  // namespace crema::cuda
