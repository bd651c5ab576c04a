// A tensor seen as [outer, count, inner], and what lies along its middle axis: scale, bias and
// slope per channel.
#pragma once

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

/// Channels in nchw: count = C, inner = H*W. In nhwc: count = C, inner = 1.
class MiddleAxis {
 public:
  MiddleAxis() = default;
  MiddleAxis(int64_t count, int64_t inner) : count_(count), inner_(inner) {}
  /// The middle index of element i.
  CREMA_BOTH int64_t of(int64_t i) const {
    return count_.remainder(inner_.quotient(static_cast<uint32_t>(i)));
  }
  /// The element with middle index row that is the col-th in order of (outer, inner).
  CREMA_BOTH int64_t element(int64_t row, int64_t col) const {
    const int64_t outer = inner_.quotient(static_cast<uint32_t>(col));
    const int64_t inner = inner_.divisor();
    return (outer * count_.divisor() + row) * inner + (col - outer * inner);
  }

 private:
  Divider count_, inner_;
};

}  // namespace crema::CREMA_ISA
