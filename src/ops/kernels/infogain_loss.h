// Cross-entropy weighted by a row of an information gain matrix H, of outer x classes x inner
// values.
#pragma once

#include <cmath>

#include "ops/kernels/label.h"

namespace crema {
namespace CREMA_ISA {

/// total[label] = sum of H's row.
struct InfogainRows {
  const float* h;
  float* total;
  int64_t classes;
  CREMA_BOTH float operator()(int64_t row, int64_t col) const { return h[row * classes + col]; }
  CREMA_BOTH void done(int64_t row, float sum) const { total[row] = sum; }
};

/// One row over all positions: loss = -sum over k of H[label][k] * log(max(p_k, 1e-20)) / divisor.
struct InfogainLoss {
  static constexpr int64_t kCost = 256;
  const float* p;
  const float* labels;
  const float* h;
  const float* divisor;
  float* loss;
  Fault* fault;
  int64_t inner;
  int classes, layer, ignored;
  bool ignores;
  CREMA_BOTH float operator()(int64_t, int64_t position) const {
    if (ignores && label_of(labels[position]) == ignored) return 0;
    const int label = checked_label(labels[position], classes, fault, layer, position);
    if (label < 0) return 0;
    const int64_t sample = position / inner;
    const float* row = p + sample * classes * inner + (position - sample * inner);
    float sum = 0;
    for (int64_t k = 0; k < classes; ++k) {
      const float v = row[k * inner];
      sum -= h[label * classes + k] * std::log(v < 1e-20f ? 1e-20f : v);
    }
    return sum;
  }
  CREMA_BOTH void done(int64_t, float sum) const { *loss = sum / *divisor; }
};

/// dx (+)= (p * total[label] - H[label][class]) * dloss / divisor; 0 at ignored positions.
struct InfogainGradient {
  const float* p;
  const float* labels;
  const float* h;
  const float* total;
  const float* divisor;
  const float* dloss;
  float* dx;
  Divider inner, classes;
  int ignored;
  bool ignores, accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const uint32_t row = inner.quotient(static_cast<uint32_t>(i));
    const uint32_t sample = classes.quotient(row);
    const auto count = static_cast<int>(classes.divisor());
    const auto c = static_cast<int>(row - sample * classes.divisor());
    const uint32_t place = static_cast<uint32_t>(i) - row * inner.divisor();
    const int label = label_of(labels[int64_t{sample} * inner.divisor() + place]);
    float g = 0;
    if (label >= 0 && label < count && !(ignores && label == ignored)) {
      const float gain = h[int64_t{label} * count + c];
      g = (p[i] * total[label] - gain) * (*dloss / *divisor);
    }
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

}  // namespace CREMA_ISA
}  // namespace crema
