// The geometry of pooling, which Pooling and SPP share.
#pragma once

#include "layers/common.h"
#include "layers/window.h"

namespace crema {

struct PoolShape {
  SpatialDims kernel, stride, pad, out;
};

/// Reads the fields for a bottom of N, C and spatial axes. Throws Error with the field that is
/// wrong.
PoolShape read_pool_shape(const PoolingParameter& param, const Shape& bottom);

/// How many windows lie along an axis: (size + 2 pad - kernel) / stride + 1, rounded up or down,
/// less the one that would start beyond size + pad. May be below 1.
int64_t pool_output(int64_t size, int64_t kernel, int64_t stride, int64_t pad, bool round_up);

/// MAX, AVE and STOCHASTIC of PoolingParameter and SPPParameter.
constexpr PoolKind pool_kind(int method) {
  return method == PoolingParameter::AVE          ? PoolKind::average
         : method == PoolingParameter::STOCHASTIC ? PoolKind::stochastic
                                                  : PoolKind::max;
}

}  // namespace crema
