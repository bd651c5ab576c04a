// Whether a tensor's values are finite: the sum of x * 0 over pieces, which NaN and infinity make
// NaN. Piece r is x[r * piece, (r + 1) * piece), the last one may be shorter.
#pragma once

#include "ops/kernels/label.h"

namespace crema {

/// Fault::index of a layer whose parameters are not finite.
constexpr int64_t kNotFinite = -1;

namespace CREMA_ISA {

struct FiniteCheck {
  const float* x;
  Fault* fault;
  int64_t count;
  int64_t piece;
  int32_t layer;

  CREMA_BOTH float operator()(int64_t row, int64_t col) const {
    const int64_t i = row * piece + col;
    return i < count ? x[i] * 0.0f : 0.0f;
  }
  CREMA_BOTH void done(int64_t, float sum) const {
    if (!(sum == 0)) report_fault(fault, layer, kNotFinite, sum);
  }
};

}  // namespace CREMA_ISA
}  // namespace crema
