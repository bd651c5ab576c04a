// CenterLoss (Wen et al., "A Discriminative Feature Learning Approach for Deep Face Recognition",
// 2016): loss = sum over the samples of |x - centre of its label|^2 / (2 N). The centres are a
// parameter whose gradient is the paper's update (equation 4), not the loss's: the mean of (centre
// - x) over the samples of the class and one more, whatever the loss weight.
#include <algorithm>

#include "layers/checks.h"
#include "layers/common.h"
#include "ops/kernels/face_losses.h"

namespace crema {
namespace {

class CenterLossLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, 2, 1, 1}; }
  bool is_loss() const override { return true; }
  bool allow_force_backward(int bottom) const override { return bottom == 0; }

  Shapes infer(const Shapes& bottom) override {
    const CenterLossParameter& p = param_.center_loss_param();
    const int axis = bottom[0].canonical(p.axis());
    classes_ = require_outputs(p.has_num_output(), p.num_output());
    samples_ = bottom[0].count(0, axis);
    cols_ = bottom[0].count(axis);
    require_labels(param_, 1, bottom[1], samples_, 1);
    params_.resize(1);
    declare(params_[0], {classes_, cols_}, p.center_filler());
    require_countable("centres", params_[0].shape);
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
    return {.scratch = static_cast<size_t>(samples_) * sizeof(float)};
  }
  void bind(const Workspace& workspace) override {
    weight_ = f32_of(workspace.scratch, {.shape = Shape{samples_}});
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    run_rows(ops,
             CenterDistance{.x = bottom[0].f32(),
                            .label = bottom[1].f32(),
                            .centers = params_[0].value.f32(),
                            .loss = top[0].f32(),
                            .fault = ops.fault(),
                            .cols = Divider(cols_),
                            .scale = 0.5f * scale(),
                            .classes = static_cast<int>(classes_),
                            .layer = context_.index},
             1, bottom[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const float* x = args.bottom[0].f32();
    const float* label = args.bottom[1].f32();
    const float* centers = params_[0].value.f32();
    if (const Grad dcenters = param_gradient(args, 0)) {
      no_gradient(ops, dcenters);
      run(ops, CenterWeights{label, weight_.f32(), samples_}, samples_);
      run(ops,
          CenterUpdate{x, label, centers, weight_.f32(), dcenters.t.f32(), samples_, cols_,
                       static_cast<int>(classes_)},
          cols_);
    }
    if (clear_without_loss(ops, args) || !args.dbottom[0]) return;
    const Grad& dx = args.dbottom[0];
    run(ops,
        CenterGradient{x, label, centers, args.dtop[0].f32(), dx.t.f32(), Divider(cols_), scale(),
                       static_cast<int>(classes_), dx.how == Write::accumulate},
        dx.t.count());
  }

  std::string explain(const Fault& fault) const override {
    return explain_label(fault, classes_, 1);
  }

 private:
  float scale() const { return 1 / static_cast<float>(std::max<int64_t>(1, samples_)); }

  int64_t classes_ = 1, samples_ = 1, cols_ = 1;
  Tensor weight_;
};

REGISTER_LAYER("CenterLoss", CenterLossLayer)

}  // namespace
}  // namespace crema
