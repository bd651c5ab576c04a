// The cuDNN plans of one convolution layer, and which layout suits it. Needs no card: tests plan
// for described ones.
#pragma once

#include "ops/cuda/cudnn_conv.h"

namespace crema::cuda {

struct ConvGraphs {
  std::shared_ptr<const ConvGraph> forward, data, filter;  // the latter two only where desc trains
  /// What forward does itself.
  bool fuses_bias = false, fuses_residual = false, fuses_act = false;
  DType dw_dtype = DType::f32;
};

/// Nothing where some direction has no engine that keeps the rules.
std::optional<ConvGraphs> plan_conv_graphs(Cudnn& cudnn, const ConvDesc& desc,
                                           const EngineRules& rules);

/// nhwc where tensor cores work (16-bit floats, or f32 with tf32 allowed), which want it; nchw for
/// true f32, where nhwc takes workspace and gains nothing.
Layout preferred_layout(const ConvDesc& desc, bool allow_tf32);

}  // namespace crema::cuda
