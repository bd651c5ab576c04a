// MultinomialLogisticLoss: loss = -sum log(max(p[label], 1e-20)) / N; the bottom holds
// probabilities.
#include "layers/sample_loss.h"
#include "ops/kernels/label_loss.h"
#include "ops/kernels/softmax_loss.h"

namespace crema {
namespace {

constexpr float kSmallest = 1e-20f;

class MultinomialLogisticLossLayer : public SampleLoss {
 public:
  using SampleLoss::SampleLoss;

  Needs plan(Ops& ops, const PlanContext& context) override {
    SampleLoss::plan(ops, context);
    return {.scratch = sizeof(float)};
  }
  void bind(const Workspace& workspace) override { divisor_ = f32_of(workspace.scratch, {}); }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    ops.fill(divisor(), divisor_);
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
                         .scale = 1 / divisor(),
                         .smallest = kSmallest,
                         .accumulate = dx.how == Write::accumulate},
        dx.t.count());
  }

 private:
  Tensor divisor_;
};

REGISTER_LAYER("MultinomialLogisticLoss", MultinomialLogisticLossLayer)

}  // namespace
}  // namespace crema
