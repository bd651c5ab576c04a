// What a loss is divided by, as loss_param says: FULL all positions, VALID those whose label is not
// ignored, BATCH_SIZE the samples, NONE 1, PRE_FIXED (Intel's) a number that is written; never less
// than 1.
#pragma once

#include <optional>

#include "layers/layer.h"

namespace crema {

class LossDivisor {
 public:
  /// fallback: the mode where neither normalization nor the older normalize is written.
  LossDivisor(const LossParameter& param, LossParameter::NormalizationMode fallback);
  /// outer: positions before the class axis (samples); inner: behind it.
  void set_positions(int64_t outer, int64_t inner);
  /// Writes the divisor of these labels into one f32 of device memory.
  void compute(Ops& ops, CTensor labels, const Tensor& divisor) const;
  std::optional<int> ignored() const { return ignored_; }

 private:
  LossParameter::NormalizationMode mode_;
  float fixed_;
  std::optional<int> ignored_;
  int64_t outer_ = 1, inner_ = 1;
};

}  // namespace crema
