// ContrastiveLoss: loss = sum of y d^2 + (1 - y) max(margin - d, 0)^2, over 2N, with d = |a - b|
// and y = 1 for similar pairs; legacy_version has max(margin - d^2, 0). The gradient divides by d +
// 1e-4.
#include "ops/kernels/contrastive_loss.h"

#include <algorithm>

#include "layers/checks.h"

namespace crema {
namespace {

class ContrastiveLossLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {3, 3, 1, 1}; }
  bool is_loss() const override { return true; }
  bool allow_force_backward(int bottom) const override { return bottom != 2; }

  Shapes infer(const Shapes& bottom) override {
    const Shape &a = bottom[0], &b = bottom[1];
    require(a.axes() >= 1 && (a.axes() < 3 || a.count(2) == 1), bottom_text(param_, 0),
            " of shape ", a, " must have samples and values (further axes of size 1)");
    require(a.count() == b.count() && b.axes() >= 1 && a[0] == b[0] &&
                (b.axes() < 3 || b.count(2) == 1),
            bottom_text(param_, 1), " of shape ", b, " must have the shape of ",
            bottom_text(param_, 0), ", ", a);
    samples_ = a[0];
    values_ = a.count(1);
    require_labels(param_, 2, bottom[2], samples_, 1);
    return {Shape{}};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.accumulates = true;
    traits.backward_reads_tops = 0;
    return traits;
  }

  Needs plan(Ops&, const PlanContext& context) override {
    refuse_gradient(param_, context, 2);
    return {.saved = static_cast<size_t>(samples_) * sizeof(float)};
  }
  void bind(const Workspace& workspace) override {
    squared_ = f32_of(workspace.saved, {.shape = Shape{samples_}});
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    const ContrastiveLossParameter& p = param_.contrastive_loss_param();
    run_rows(ops, PairDistances{bottom[0].f32(), bottom[1].f32(), squared_.f32(), values_},
             samples_, values_);
    run_rows(ops,
             ContrastiveLoss{.squared = squared_.f32(),
                             .similar = bottom[2].f32(),
                             .loss = top[0].f32(),
                             .margin = p.margin(),
                             .scale = 0.5f / static_cast<float>(std::max<int64_t>(1, samples_)),
                             .legacy = p.legacy_version()},
             1, samples_);
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const ContrastiveLossParameter& p = param_.contrastive_loss_param();
    for (size_t i = 0; i < 2; ++i) {
      const Grad& dx = args.dbottom[i];
      if (!dx) continue;
      run(ops,
          ContrastiveGradient{.a = args.bottom[i].f32(),
                              .b = args.bottom[1 - i].f32(),
                              .squared = squared_.f32(),
                              .similar = args.bottom[2].f32(),
                              .dloss = args.dtop[0].f32(),
                              .dx = dx.t.f32(),
                              .cols = Divider(values_),
                              .margin = p.margin(),
                              .scale = 1 / static_cast<float>(std::max<int64_t>(1, samples_)),
                              .legacy = p.legacy_version(),
                              .accumulate = dx.how == Write::accumulate},
          dx.t.count());
    }
  }

 private:
  int64_t samples_ = 1, values_ = 1;
  Tensor squared_;
};

REGISTER_LAYER("ContrastiveLoss", ContrastiveLossLayer)

}  // namespace
}  // namespace crema
