// Losses over samples with one label each: bottom 0 [N, ...] holds a value per class, bottom 1 the
// labels, the top is one number, a mean over N.
#pragma once

#include <algorithm>
#include <string>

#include "layers/checks.h"

namespace crema {

class SampleLoss : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, 2, 1, 1}; }
  bool is_loss() const override { return true; }
  bool allow_force_backward(int bottom) const override { return bottom != 1; }

  Shapes infer(const Shapes& bottom) override {
    require(bottom[0].axes() > 0, bottom_text(param_, 0), " needs a first axis, the samples");
    samples_ = bottom[0][0];
    classes_ = bottom[0].count(1);
    require_labels(param_, 1, bottom[1], samples_, 1);
    return {Shape{}};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.accumulates = true;
    traits.backward_reads_tops = 0;
    return traits;
  }

  Needs plan(Ops&, const PlanContext& context) override {
    refuse_gradient(param_, context, 1);
    return {};
  }

  std::string explain(const Fault& fault) const override {
    return explain_label(fault, classes_, 1);
  }

 protected:
  /// N, at least 1: what the sum is divided by.
  float divisor() const { return static_cast<float>(std::max<int64_t>(1, samples_)); }

  int64_t samples_ = 1, classes_ = 1;
};

}  // namespace crema
