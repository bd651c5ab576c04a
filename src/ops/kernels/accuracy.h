// Accuracy: whether each position's label is among the k best scores, and the means of that.
#pragma once

#include "ops/kernels/label.h"

namespace crema {
namespace CREMA_ISA {

/// score[position] = 1 when the label's score is among the top_k, 0 when not, -1 when the label is
/// ignored. Ties count against the label, a NaN score is never correct and sets *saw_nan.
struct AccuracyScore {
  static constexpr int64_t kCost = 256;
  const float* x;
  const float* labels;
  float* score;
  int32_t* saw_nan;
  Fault* fault;
  int64_t inner;
  int classes, top_k, layer, ignored;
  bool ignores;
  CREMA_BOTH void operator()(int64_t position) const {
    score[position] = -1;
    if (ignores && label_of(labels[position]) == ignored) return;
    const int label = checked_label(labels[position], classes, fault, layer, position);
    if (label < 0) return;
    const int64_t sample = position / inner;
    const float* scores = x + sample * classes * inner + (position - sample * inner);
    const float own = scores[label * inner];
    int not_worse = 0;
    bool has_nan = false;
    for (int64_t k = 0; k < classes; ++k) {
      const float other = scores[k * inner];
      not_worse += other >= own;
      has_nan |= other != other;
    }
    if (has_nan) release(saw_nan, 1);
    score[position] = !has_nan && not_worse <= top_k ? 1.0f : 0.0f;
  }
};

/// One row per class (or one row for all): how many positions count.
struct AccuracyCount {
  const float* score;
  const float* labels;
  float* count;
  bool per_class;
  CREMA_BOTH float operator()(int64_t row, int64_t position) const {
    const bool counts = score[position] >= 0 && (!per_class || label_of(labels[position]) == row);
    return counts ? 1.0f : 0.0f;
  }
  CREMA_BOTH void done(int64_t row, float sum) const { count[row] = sum; }
};

/// y[row] = the mean score of the positions that count, 0 where none does.
struct AccuracyMean {
  const float* score;
  const float* labels;
  const float* count;
  float* y;
  bool per_class;
  CREMA_BOTH float operator()(int64_t row, int64_t position) const {
    const bool correct = score[position] > 0 && (!per_class || label_of(labels[position]) == row);
    return correct ? 1.0f : 0.0f;
  }
  CREMA_BOTH void done(int64_t row, float sum) const {
    y[row] = count[row] > 0 ? sum / count[row] : 0.0f;
  }
};

}  // namespace CREMA_ISA
}  // namespace crema
