// Cross-entropy of probabilities that lie as outer x classes x inner, with one label per position.
#pragma once

#include <cmath>

#include "ops/kernels/label.h"

namespace crema {
namespace CREMA_ISA {

/// One row over all positions: loss = -sum log(max(p[label], smallest)) / divisor. NaN stays NaN.
struct LabelLogLoss {
  static constexpr int64_t kCost = 16;
  const float* p;
  const float* labels;
  const float* divisor;
  float* loss;
  Fault* fault;
  int64_t inner;
  float smallest;
  int classes, layer, ignored;
  bool ignores;
  CREMA_BOTH float operator()(int64_t, int64_t position) const {
    if (ignores && label_of(labels[position]) == ignored) return 0;
    const int label = checked_label(labels[position], classes, fault, layer, position);
    if (label < 0) return 0;
    const int64_t sample = position / inner;
    const float v = p[(sample * classes + label) * inner + (position - sample * inner)];
    return -std::log(v < smallest ? smallest : v);
  }
  CREMA_BOTH void done(int64_t, float sum) const { *loss = sum / *divisor; }
};

/// dx (+)= (p - [class is the label]) * dloss / divisor; 0 at ignored positions.
struct SoftmaxLossGradient {
  const float* p;
  const float* labels;
  const float* divisor;
  const float* dloss;
  float* dx;
  Divider inner, classes;
  int ignored;
  bool ignores, accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const uint32_t row = inner.quotient(static_cast<uint32_t>(i));
    const uint32_t sample = classes.quotient(row);
    const auto c = static_cast<int>(row - sample * classes.divisor());
    const uint32_t place = static_cast<uint32_t>(i) - row * inner.divisor();
    const int label = label_of(labels[int64_t{sample} * inner.divisor() + place]);
    float g = (p[i] - (c == label ? 1.0f : 0.0f)) * (*dloss / *divisor);
    if (ignores && label == ignored) g = 0;
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

/// The same with a weight for each class and smoothed labels: one row over all positions,
/// loss = sum w[label] * ((1 - s) * -log p[label] + s / K * sum over k of -log p[k]) / divisor.
struct WeightedLogLoss {
  static constexpr int64_t kCost = 64;
  const float* p;
  const float* labels;
  const float* weight;  // one for each class
  const float* divisor;
  float* loss;
  Fault* fault;
  int64_t inner;
  float smallest, smoothing;
  int classes, layer, ignored;
  bool ignores;
  CREMA_BOTH float cost(float v) const { return -std::log(v < smallest ? smallest : v); }
  CREMA_BOTH float operator()(int64_t, int64_t position) const {
    if (ignores && label_of(labels[position]) == ignored) return 0;
    const int label = checked_label(labels[position], classes, fault, layer, position);
    if (label < 0) return 0;
    const int64_t sample = position / inner;
    const float* row = p + sample * classes * inner + (position - sample * inner);
    float sum = (1 - smoothing) * cost(row[label * inner]);
    if (smoothing > 0) {
      float all = 0;
      for (int64_t k = 0; k < classes; ++k) all += cost(row[k * inner]);
      sum += smoothing / static_cast<float>(classes) * all;
    }
    return weight[label] * sum;
  }
  CREMA_BOTH void done(int64_t, float sum) const { *loss = sum / *divisor; }
};

/// dx (+)= w[label] * (p - (1 - s) [class is the label] - s / K) * dloss / divisor.
struct WeightedLossGradient {
  const float* p;
  const float* labels;
  const float* weight;
  const float* divisor;
  const float* dloss;
  float* dx;
  Divider inner, classes;
  float smoothing;
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
      const float target =
          (c == label ? 1 - smoothing : 0.0f) + smoothing / static_cast<float>(count);
      g = weight[label] * (p[i] - target) * (*dloss / *divisor);
    }
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

}  // namespace CREMA_ISA
}  // namespace crema
