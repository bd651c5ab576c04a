// How much arithmetic a layer is: counted from shapes alone, for tables.
#pragma once

#include <cstdint>

#include "layers/layer.h"

namespace crema {

/// Multiply-accumulates of one forward pass of a layer whose shapes are known. Counted are
/// convolution, inner product and recurrent layers (a multiplication by each weight each time it is
/// used), and one for each element of Scale, BatchNorm, LRN, Eltwise and PReLU; others count as 0.
int64_t multiply_adds(Layer& layer, const Shapes& bottom, const Shapes& top);

}  // namespace crema
