// SigmoidCrossEntropyLoss: loss = -sum t log(s) + (1 - t) log(1 - s), s = sigmoid(x), over a
// divisor that is the number of samples unless loss_param says otherwise. Targets need not be 0
// or 1.
#include "layers/checks.h"
#include "layers/loss_divisor.h"
#include "ops/kernels/sigmoid_loss.h"

namespace crema {
namespace {

class SigmoidCrossEntropyLossLayer : public Layer {
 public:
  SigmoidCrossEntropyLossLayer(const LayerParameter& param, const LayerContext& context)
      : Layer(param, context), divisor_rule_(param.loss_param(), LossParameter::BATCH_SIZE) {}

  Arity arity() const override { return {2, 2, 1, 1}; }
  bool is_loss() const override { return true; }
  bool allow_force_backward(int bottom) const override { return bottom != 1; }

  Shapes infer(const Shapes& bottom) override {
    require(bottom[0].axes() > 0, bottom_text(param_, 0), " needs a first axis, the samples");
    require(bottom[0].count() == bottom[1].count(), bottom_text(param_, 1), " of shape ", bottom[1],
            " must hold as many targets as ", bottom_text(param_, 0), " of shape ", bottom[0],
            " has values");
    are_alike_ = bottom[0] == bottom[1];
    divisor_rule_.set_positions(bottom[0][0], bottom[0].count(1));
    return {Shape{}};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = are_alike_;
    traits.accumulates = true;
    traits.backward_reads_tops = 0;
    return traits;
  }

  Needs plan(Ops&, const PlanContext& context) override {
    refuse_gradient(param_, context, 1);
    return {.saved = sizeof(float)};
  }
  void bind(const Workspace& workspace) override { divisor_ = f32_of(workspace.saved, {}); }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    divisor_rule_.compute(ops, bottom[1], divisor_);
    run_rows(ops,
             SigmoidLogLoss{.x = bottom[0].f32(),
                            .target = bottom[1].f32(),
                            .divisor = divisor_.f32(),
                            .loss = top[0].f32(),
                            .ignored = divisor_rule_.ignored().value_or(0),
                            .ignores = divisor_rule_.ignored().has_value()},
             1, bottom[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    run(ops,
        SigmoidLossGradient{.x = args.bottom[0].f32(),
                            .target = args.bottom[1].f32(),
                            .divisor = divisor_.f32(),
                            .dloss = args.dtop[0].f32(),
                            .dx = dx.t.f32(),
                            .ignored = divisor_rule_.ignored().value_or(0),
                            .ignores = divisor_rule_.ignored().has_value(),
                            .accumulate = dx.how == Write::accumulate},
        dx.t.count());
  }

 private:
  LossDivisor divisor_rule_;
  bool are_alike_ = false;
  Tensor divisor_;
};

REGISTER_LAYER("SigmoidCrossEntropyLoss", SigmoidCrossEntropyLossLayer)

}  // namespace
}  // namespace crema
