// MultinomialLogisticLoss: loss = -sum log(max(p[label], 1e-20)) / N; the bottom holds
// probabilities.
#include <algorithm>

#include "layers/checks.h"
#include "ops/kernels/label_loss.h"
#include "ops/kernels/softmax_loss.h"

namespace crema {
namespace {

constexpr float kSmallest = 1e-20f;

class MultinomialLogisticLossLayer : public Layer {
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
    return {.scratch = sizeof(float)};
  }
  void bind(const Workspace& workspace) override { divisor_ = f32_of(workspace.scratch, {}); }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    ops.fill(static_cast<float>(std::max<int64_t>(1, samples_)), divisor_);
    run_rows(ops,
             LabelLogLoss{.p = bottom[0].f32(),
                          .labels = bottom[1].f32(),
                          .divisor = divisor_.f32(),
                          .loss = top[0].f32(),
                          .fault = ops.fault(),
                          .inner = 1,
                          .smallest = kSmallest,
                          .classes = static_cast<int>(classes_),
                          .layer = context_.index,
                          .ignored = 0,
                          .ignores = false},
             1, samples_);
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    run(ops,
        LabelLogGradient{.p = args.bottom[0].f32(),
                         .labels = args.bottom[1].f32(),
                         .dloss = args.dtop[0].f32(),
                         .dx = dx.t.f32(),
                         .classes = Divider(classes_),
                         .scale = 1 / static_cast<float>(std::max<int64_t>(1, samples_)),
                         .smallest = kSmallest,
                         .accumulate = dx.how == Write::accumulate},
        dx.t.count());
  }

  std::string explain(const Fault& fault) const override {
    return explain_label(fault, classes_, 1);
  }

 private:
  int64_t samples_ = 1, classes_ = 1;
  Tensor divisor_;
};

REGISTER_LAYER("MultinomialLogisticLoss", MultinomialLogisticLossLayer)

}  // namespace
}  // namespace crema
