// Powers of two times the first scale, so that scaling rounds nothing.
#include "solver/loss_scale.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace crema {

LossScale::LossScale(const NetParameter& net, DType type) {
  const float written = net.global_grad_scale();
  require(std::isfinite(written) && written > 0, "global_grad_scale must be above 0, not ",
          written);
  if (type != DType::f16) return;
  in_use_ = true;
  adapts_ = !net.has_global_grad_scale() || net.global_grad_scale_adaptive();
  value_ = net.has_global_grad_scale() ? written : kFirst;
}

bool LossScale::allows_step(int iter, double norm, bool logs) {
  if (!in_use_) return true;
  if (std::isfinite(norm)) {
    count_step();
    return true;
  }
  const float before = value_;
  overflow();
  LOG_IF(INFO, logs) << "Iteration " << iter << ": gradients overflow at loss scale " << before
                     << ", the step is skipped; the loss scale is " << value_;
  return false;
}

void LossScale::count_step() {
  if (!adapts_ || ++steps_ < kGrowthInterval) return;
  steps_ = 0;
  value_ = std::min(2 * value_, std::max(value_, kLargest));
}

void LossScale::overflow() {
  steps_ = 0;
  if (!adapts_) return;
  require(value_ > 1.0F / 1024, "the gradients are not finite, whatever the loss scale");
  value_ /= 2;
}

void LossScale::restore(float value, int steps) {
  if (!in_use_ || !(value > 0)) return;
  value_ = value;
  steps_ = steps;
}

}  // namespace crema
