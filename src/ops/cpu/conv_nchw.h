// Convolution of nchw activations by an nhwc plan between two transposes: the library's own nchw
// code is slower than that, and allocates in every call.
#pragma once

#include <memory>

#include "ops/ops.h"

namespace crema {

/// inner is the plan of the same problem in nhwc.
std::unique_ptr<ConvPlan> make_nchw_conv(Ops& ops, const ConvDesc& desc,
                                         std::unique_ptr<ConvPlan> inner);

}  // namespace crema
