// TripletLoss (Schroff et al., "FaceNet", 2015): loss = sum max(0, margin + |a - p|^2 - |a - n|^2)
// / (2 N). Bottoms: anchors, positives, negatives, all [N, ...].
#include <algorithm>

#include "layers/checks.h"
#include "layers/common.h"
#include "ops/kernels/face_losses.h"

namespace crema {
namespace {

class TripletLossLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {3, 3, 1, 1}; }
  bool is_loss() const override { return true; }

  Shapes infer(const Shapes& bottom) override {
    const Shape& anchor = bottom[0];
    require(anchor.axes() > 0, bottom_text(param_, 0), " needs a first axis, the samples");
    for (int i = 1; i < 3; ++i) {
      require(bottom[static_cast<size_t>(i)] == anchor, bottom_text(param_, i), " of shape ",
              bottom[static_cast<size_t>(i)], " must have the shape of ", bottom_text(param_, 0),
              ", ", anchor);
    }
    samples_ = anchor[0];
    cols_ = anchor.count(1);
    return {Shape{}};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.accumulates = true;
    traits.backward_reads_tops = 0;
    return traits;
  }

  Needs plan(Ops&, const PlanContext&) override {
    return {.saved = static_cast<size_t>(samples_) * sizeof(float)};
  }
  void bind(const Workspace& workspace) override {
    gap_ = f32_of(workspace.saved, {.shape = Shape{samples_}});
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    run_rows(ops, TripletGaps{bottom[0].f32(), bottom[1].f32(), bottom[2].f32(), gap_.f32(), cols_},
             samples_, cols_);
    run_rows(ops, TripletLoss{gap_.f32(), top[0].f32(), margin(), 0.5f * scale()}, 1, samples_);
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    if (clear_without_loss(ops, args)) return;
    // The anchors' gradient is n - p, the positives' p - a, the negatives' a - n.
    constexpr size_t kPlus[3] = {2, 1, 0}, kMinus[3] = {1, 0, 2};
    for (size_t i = 0; i < 3; ++i) {
      const Grad& dx = args.dbottom[i];
      if (!dx) continue;
      run(ops,
          TripletGradient{.plus = args.bottom[kPlus[i]].f32(),
                          .minus = args.bottom[kMinus[i]].f32(),
                          .gap = gap_.f32(),
                          .dloss = args.dtop[0].f32(),
                          .dx = dx.t.f32(),
                          .cols = Divider(cols_),
                          .margin = margin(),
                          .scale = scale(),
                          .accumulate = dx.how == Write::accumulate},
          dx.t.count());
    }
  }

 private:
  float margin() const { return param_.triplet_loss_param().margin(); }
  float scale() const { return 1 / static_cast<float>(std::max<int64_t>(1, samples_)); }

  int64_t samples_ = 1, cols_ = 1;
  Tensor gap_;
};

REGISTER_LAYER("TripletLoss", TripletLossLayer)

}  // namespace
}  // namespace crema
