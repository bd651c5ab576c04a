// The learning rate of each iteration: a policy, with a linear warm-up in front of it. A pure
// function of the iteration, so a resumed run, whatever the step it was saved at, has the rate that
// an unbroken one has.
#pragma once

#include "crema.pb.h"

namespace crema {

/// Policies by lr_policy, with k the iteration, b base_lr, g gamma, p power:
///   fixed b; step b g^floor(k / stepsize); exp b g^k; inv b (1 + g k)^-p; multistep b g^(number of
///   stepvalues <= k); poly b (1 - k / max_iter)^p, 0 from max_iter on; sigmoid b / (1 + e^(-g (k -
///   stepsize))); cosine b (1 + cos(pi k / max_iter)) / 2, 0 from max_iter on (Loshchilov and
///   Hutter 2017, without restarts).
/// During the first warmup_iter iterations the rate rises from warmup_start_lr to the policy's
/// value.
class LearningRate {
 public:
  /// Throws Error when the policy is unknown (with the nearest name), a field that it needs is
  /// missing or out of range, or stepvalue is not sorted. All of these in one Error.
  /// log: whether at() logs.
  explicit LearningRate(const SolverParameter& param, bool log = true);

  /// The rate of iteration `iter`. Logs "MultiStep Status: ..." when multistep has moved on.
  float at(int iter);

  /// How many stepvalues have been passed: SolverState.current_step. Only multistep counts.
  int current_step() const { return current_step_; }
  void set_current_step(int step) { current_step_ = step; }

 private:
  double policy_value(int iter) const;
  int steps_passed(int iter) const;

  SolverParameter param_;  // without nets
  bool log_;
  int current_step_ = 0;
};

}  // namespace crema
