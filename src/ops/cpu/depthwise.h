// Convolutions with 3 x 3 windows whose groups have one channel each, by loops of our own in all
// three directions: they are bound by memory.
#pragma once

#include <memory>

#include "ops/cpu/isa/isa.h"

namespace crema {

bool depthwise_suits(const Isa& isa, const ConvDesc& nhwc);
std::unique_ptr<ConvPlan> make_depthwise_conv(const Isa& isa, const ConvDesc& nhwc);

}  // namespace crema
