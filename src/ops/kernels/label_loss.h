// Losses of N rows of scores or probabilities against one label each: hinge and multinomial
// logistic.
#pragma once

#include <cmath>

#include "ops/kernels/label.h"

namespace crema {
namespace CREMA_ISA {

/// max(0, 1 - t * x), t = 1 for the label's score and -1 for the others.
CREMA_BOTH inline float hinge_margin(float x, bool is_label) {
  const float margin = is_label ? 1 - x : 1 + x;
  return margin < 0 ? 0.0f : margin;
}

/// One row over all scores: loss = sum of margins (or of their squares) * scale.
struct HingeLoss {
  const float* x;
  const float* labels;
  float* loss;
  Fault* fault;
  Divider classes;
  float scale;
  int layer;
  bool squared;
  CREMA_BOTH float operator()(int64_t, int64_t i) const {
    const uint32_t sample = classes.quotient(static_cast<uint32_t>(i));
    const int label =
        checked_label(labels[sample], static_cast<int>(classes.divisor()), fault, layer, sample);
    if (label < 0) return 0;
    const float margin = hinge_margin(x[i], i == int64_t{sample} * classes.divisor() + label);
    return squared ? margin * margin : margin;
  }
  CREMA_BOTH void done(int64_t, float sum) const { *loss = scale * sum; }
};

struct HingeGradient {
  const float* x;
  const float* labels;
  const float* dloss;
  float* dx;
  Divider classes;
  float scale;
  bool squared, accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const uint32_t sample = classes.quotient(static_cast<uint32_t>(i));
    const bool is_label = i == int64_t{sample} * classes.divisor() + label_of(labels[sample]);
    const float margin = hinge_margin(x[i], is_label);
    float g = (squared ? 2 * margin : margin > 0 ? 1.0f : 0.0f) * scale * *dloss;
    if (is_label) g = -g;
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

/// dx (+)= -scale * dloss / max(p, smallest) for the label's probability, 0 for the others.
struct LabelLogGradient {
  const float* p;
  const float* labels;
  const float* dloss;
  float* dx;
  Divider classes;
  float scale, smallest;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const uint32_t sample = classes.quotient(static_cast<uint32_t>(i));
    const bool is_label = i == int64_t{sample} * classes.divisor() + label_of(labels[sample]);
    const float g = is_label ? -scale * *dloss / (p[i] < smallest ? smallest : p[i]) : 0.0f;
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

}  // namespace CREMA_ISA
}  // namespace crema
