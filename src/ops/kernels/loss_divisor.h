// The divisor of a loss: how many of its labels count.
#pragma once

#include "ops/kernels/label.h"

namespace crema {
namespace CREMA_ISA {

/// One row over all labels: divisor = max(1, number of labels that are not ignored).
struct KeptLabels {
  const float* labels;
  float* divisor;
  int ignored;
  CREMA_BOTH float operator()(int64_t, int64_t col) const {
    return label_of(labels[col]) == ignored ? 0.0f : 1.0f;
  }
  CREMA_BOTH void done(int64_t, float sum) const { *divisor = sum > 1 ? sum : 1.0f; }
};

}  // namespace CREMA_ISA
}  // namespace crema
