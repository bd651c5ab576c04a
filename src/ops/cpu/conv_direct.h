// Convolution by plain loops, for the shapes that the library does not take: correct, not fast.
#pragma once

#include <memory>

#include "ops/cpu/isa/isa.h"

namespace crema {

std::unique_ptr<ConvPlan> make_direct_conv(const Isa& isa, const ConvDesc& desc);

}  // namespace crema
