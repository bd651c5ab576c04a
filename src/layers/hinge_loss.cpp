// HingeLoss: loss = sum over samples and classes of max(0, 1 - t * x) / N (L1) or of its square
// (L2), t = 1 for the label and -1 for the other classes.
#include <algorithm>

#include "layers/checks.h"
#include "ops/kernels/label_loss.h"

namespace crema {
namespace {

class HingeLossLayer : public Layer {
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

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    run_rows(ops,
             HingeLoss{.x = bottom[0].f32(),
                       .labels = bottom[1].f32(),
                       .loss = top[0].f32(),
                       .fault = ops.fault(),
                       .classes = Divider(classes_),
                       .scale = scale(),
                       .layer = context_.index,
                       .squared = is_squared()},
             1, bottom[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    run(ops,
        HingeGradient{.x = args.bottom[0].f32(),
                      .labels = args.bottom[1].f32(),
                      .dloss = args.dtop[0].f32(),
                      .dx = dx.t.f32(),
                      .classes = Divider(classes_),
                      .scale = scale(),
                      .squared = is_squared(),
                      .accumulate = dx.how == Write::accumulate},
        dx.t.count());
  }

  std::string explain(const Fault& fault) const override {
    return explain_label(fault, classes_, 1);
  }

 private:
  bool is_squared() const { return param_.hinge_loss_param().norm() == HingeLossParameter::L2; }
  float scale() const { return 1 / static_cast<float>(std::max<int64_t>(1, samples_)); }

  int64_t samples_ = 1, classes_ = 1;
};

REGISTER_LAYER("HingeLoss", HingeLossLayer)

}  // namespace
}  // namespace crema
