// SmoothL1Loss (Girshick, "Fast R-CNN", 2015): loss = sum w_out f(w_in (a - b)) / N, f quadratic
// below 1 / sigma^2 and linear above. Bottoms a, b; SSD has w_in as a third, R-CNN w_in and w_out
// and sigma. L1Loss (NVCaffe): loss = sum |a - b| / N. N is the size of the first axis.
#include "ops/kernels/smooth_l1_loss.h"

#include <algorithm>

#include "layers/checks.h"

namespace crema {
namespace {

/// What both losses share: shapes and the sample count.
class DistanceLoss : public Layer {
 public:
  using Layer::Layer;
  bool is_loss() const override { return true; }
  bool allow_force_backward(int bottom) const override { return bottom < 2; }

  Shapes infer(const Shapes& bottom) override {
    require(bottom[0].axes() > 0, bottom_text(param_, 0), " needs a first axis, the samples");
    for (size_t i = 1; i < bottom.size(); ++i) {
      require(bottom[i].axes() > 0 && bottom[i].count() == bottom[0].count() &&
                  bottom[i][0] == bottom[0][0],
              bottom_text(param_, static_cast<int>(i)), " of shape ", bottom[i],
              " must have as many samples and values as ", bottom_text(param_, 0), ", ", bottom[0]);
    }
    scale_ = 1 / static_cast<float>(std::max<int64_t>(1, bottom[0][0]));
    return {Shape{}};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.accumulates = true;
    traits.backward_reads_tops = 0;
    return traits;
  }

  Needs plan(Ops&, const PlanContext& context) override {
    for (int i = 2; i < param_.bottom_size(); ++i) refuse_gradient(param_, context, i);
    return {};
  }

 protected:
  float scale_ = 1;
};

class SmoothL1LossLayer : public DistanceLoss {
 public:
  using DistanceLoss::DistanceLoss;
  Arity arity() const override { return {2, 4, 1, 1}; }

  Shapes infer(const Shapes& bottom) override {
    const float sigma = param_.smooth_l1_loss_param().sigma();
    require(sigma > 0, "sigma: must be above 0, got ", sigma);
    sigma2_ = sigma * sigma;
    return DistanceLoss::infer(bottom);
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    run_rows(ops,
             SmoothL1Loss{bottom[0].f32(), bottom[1].f32(), weights(bottom, 2), weights(bottom, 3),
                          top[0].f32(), sigma2_, scale_},
             1, bottom[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    if (clear_without_loss(ops, args)) return;
    for (size_t i = 0; i < 2; ++i) {
      const Grad& dx = args.dbottom[i];
      if (!dx) continue;
      run(ops,
          SmoothL1Gradient{.a = args.bottom[i].f32(),
                           .b = args.bottom[1 - i].f32(),
                           .inside = weights(args.bottom, 2),
                           .outside = weights(args.bottom, 3),
                           .dloss = args.dtop[0].f32(),
                           .dx = dx.t.f32(),
                           .sigma2 = sigma2_,
                           .scale = scale_,
                           .accumulate = dx.how == Write::accumulate},
          dx.t.count());
    }
  }

 private:
  static const float* weights(CTensors bottom, size_t i) {
    return i < bottom.size() ? bottom[i].f32() : nullptr;
  }

  float sigma2_ = 1;
};

class L1LossLayer : public DistanceLoss {
 public:
  using DistanceLoss::DistanceLoss;
  Arity arity() const override { return {2, 2, 1, 1}; }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    run_rows(ops, L1Loss{bottom[0].f32(), bottom[1].f32(), top[0].f32(), scale_}, 1,
             bottom[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    if (clear_without_loss(ops, args)) return;
    for (size_t i = 0; i < 2; ++i) {
      const Grad& dx = args.dbottom[i];
      if (!dx) continue;
      run(ops,
          L1Gradient{args.bottom[i].f32(), args.bottom[1 - i].f32(), args.dtop[0].f32(), dx.t.f32(),
                     scale_, dx.how == Write::accumulate},
          dx.t.count());
    }
  }
};

REGISTER_LAYER("SmoothL1Loss", SmoothL1LossLayer)
REGISTER_LAYER("L1Loss", L1LossLayer)

}  // namespace
}  // namespace crema
