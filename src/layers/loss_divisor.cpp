// The number of kept labels is counted on the device, since only the device has seen the labels.
#include "layers/loss_divisor.h"

#include <algorithm>

#include "ops/kernels/loss_divisor.h"

namespace crema {

LossDivisor::LossDivisor(const LossParameter& param, LossParameter::NormalizationMode fallback)
    : mode_(fallback), fixed_(param.pre_fixed_normalizer()) {
  require(!param.has_pre_fixed_normalizer() || fixed_ > 0,
          "pre_fixed_normalizer: must be above 0, not ", fixed_);
  if (param.has_ignore_label()) ignored_ = param.ignore_label();
  if (param.has_normalization()) {
    mode_ = param.normalization();
  } else if (param.has_normalize()) {
    mode_ = param.normalize() ? LossParameter::VALID : LossParameter::BATCH_SIZE;
  }
}

void LossDivisor::set_positions(int64_t outer, int64_t inner) {
  outer_ = outer;
  inner_ = inner;
}

void LossDivisor::compute(Ops& ops, CTensor labels, const Tensor& divisor) const {
  if (mode_ == LossParameter::VALID && ignored_) {
    run_rows(ops, KeptLabels{labels.f32(), divisor.f32(), *ignored_}, 1, outer_ * inner_);
    return;
  }
  if (mode_ == LossParameter::PRE_FIXED) return ops.fill(std::max(1.0F, fixed_), divisor);
  int64_t count = outer_ * inner_;  // FULL, and VALID when no label is ignored
  if (mode_ == LossParameter::BATCH_SIZE) count = outer_;
  if (mode_ == LossParameter::NONE) count = 1;
  ops.fill(static_cast<float>(std::max<int64_t>(1, count)), divisor);
}

}  // namespace crema
