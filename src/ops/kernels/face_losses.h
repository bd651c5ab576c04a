// CenterLoss (Wen et al. 2016) and TripletLoss (Schroff et al. 2015).
#pragma once

#include "ops/kernels/label.h"

namespace crema::CREMA_ISA {

/// One row: scale * sum of (x - centre of its label)^2. A label out of range is a fault and counts
/// 0.
struct CenterDistance {
  const float* x;
  const float* label;
  const float* centers;
  float* loss;
  Fault* fault;
  Divider cols;
  float scale;
  int classes;
  int32_t layer;
  CREMA_BOTH float operator()(int64_t, int64_t i) const {
    const uint32_t row = cols.quotient(static_cast<uint32_t>(i));
    const uint32_t col = cols.remainder(static_cast<uint32_t>(i));
    const int c = checked_label(label[row], classes, fault, layer, row);
    if (c < 0) return 0;
    const float d = x[i] - centers[static_cast<int64_t>(c) * cols.divisor() + col];
    return d * d;
  }
  CREMA_BOTH void done(int64_t, float sum) const { *loss = scale * sum; }
};

/// dx (+)= scale * dloss * (x - centre).
struct CenterGradient {
  const float* x;
  const float* label;
  const float* centers;
  const float* dloss;
  float* dx;
  Divider cols;
  float scale;
  int classes;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const uint32_t col = cols.remainder(static_cast<uint32_t>(i));
    const int c = label_of(label[cols.quotient(static_cast<uint32_t>(i))]);
    const bool is_inside = c >= 0 && c < classes;
    const float center = is_inside ? centers[static_cast<int64_t>(c) * cols.divisor() + col] : x[i];
    const float g = scale * *dloss * (x[i] - center);
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

/// weight[i] = 1 / (1 + samples that have the label of sample i).
struct CenterWeights {
  const float* label;
  float* weight;
  int64_t samples;
  CREMA_BOTH void operator()(int64_t i) const {
    int64_t same = 0;
    for (int64_t j = 0; j < samples; ++j) same += label_of(label[j]) == label_of(label[i]);
    weight[i] = 1 / static_cast<float>(1 + same);
  }
};

/// dcenters[c] += sum over its samples of weight * (centre - x); one column, samples in order.
struct CenterUpdate {
  const float* x;
  const float* label;
  const float* centers;
  const float* weight;
  float* dcenters;
  int64_t samples, cols;
  int classes;
  CREMA_BOTH void operator()(int64_t col) const {
    for (int64_t i = 0; i < samples; ++i) {
      const int c = label_of(label[i]);
      if (c < 0 || c >= classes) continue;
      const int64_t at = c * cols + col;
      dcenters[at] += weight[i] * (centers[at] - x[i * cols + col]);
    }
  }
};

/// gap[i] = sum of (a - p)^2 - (a - n)^2.
struct TripletGaps {
  const float* anchor;
  const float* positive;
  const float* negative;
  float* gap;
  int64_t cols;
  CREMA_BOTH float operator()(int64_t row, int64_t col) const {
    const int64_t i = row * cols + col;
    const float p = anchor[i] - positive[i], n = anchor[i] - negative[i];
    return p * p - n * n;
  }
  CREMA_BOTH void done(int64_t row, float sum) const { gap[row] = sum; }
};

/// One row over the samples: scale * sum of max(0, margin + gap).
struct TripletLoss {
  const float* gap;
  float* loss;
  float margin, scale;
  CREMA_BOTH float operator()(int64_t, int64_t i) const {
    const float v = margin + gap[i];
    return v > 0 ? v : 0.0f;
  }
  CREMA_BOTH void done(int64_t, float sum) const { *loss = scale * sum; }
};

/// dx (+)= scale * dloss * (plus - minus) for the triplets that break the margin.
struct TripletGradient {
  const float* plus;
  const float* minus;
  const float* gap;
  const float* dloss;
  float* dx;
  Divider cols;
  float margin, scale;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const bool counts = margin + gap[cols.quotient(static_cast<uint32_t>(i))] > 0;
    const float g = counts ? scale * *dloss * (plus[i] - minus[i]) : 0.0f;
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

}  // namespace crema::CREMA_ISA
