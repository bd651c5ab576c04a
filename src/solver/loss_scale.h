// The loss scale of training in f16: gradients are multiplied by it on their way back, so that
// small ones are not lost, and divided by it before the update.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "crema.pb.h"

namespace crema {

class LossScale {
 public:
  static constexpr float kFirst = 4096, kLargest = 16777216;
  static constexpr int kGrowthInterval = 1000;

  /// 1, always, unless type is f16. There it begins with the net's global_grad_scale, or kFirst
  /// where that is not written, and adapts (Micikevicius et al. 2018): half after each overflow,
  /// double after kGrowthInterval steps without one. A written scale stays as it is unless
  /// global_grad_scale_adaptive is true. Throws Error for a scale that is not a number above 0.
  LossScale(const NetParameter& net, DType type);

  float value() const { return value_; }
  /// Whether gradients must be looked at before an update.
  bool is_in_use() const { return in_use_; }
  int steps() const { return steps_; }
  /// Whether gradients of that norm can be used in iteration iter: counts the step, or (where a
  /// scale is in use and the norm is not finite) an overflow, which is logged where `logs`.
  bool allows_step(int iter, double norm, bool logs);
  void count_step();
  /// Throws Error where a smaller scale cannot help.
  void overflow();
  /// What a solver state holds; without a scale in use, nothing.
  void restore(float value, int steps);

 private:
  float value_ = 1;
  bool in_use_ = false, adapts_ = false;
  int steps_ = 0;  // since it last changed
};

}  // namespace crema
