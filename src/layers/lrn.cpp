// Local response normalisation (Krizhevsky et al. 2012), across channels or within each; formulas
// at LrnDesc. WITHIN_CHANNEL ignores k, as Caffe on a CPU does.
// BVLC: no running sum, which leaves NaN behind a huge value in Caffe.
#include "layers/checks.h"
#include "layers/common.h"

namespace crema {
namespace {

class LrnLayer : public Layer {
 public:
  using Layer::Layer;

  Shapes infer(const Shapes& bottom) override {
    const LRNParameter& p = param_.lrn_param();
    require(p.local_size() % 2 == 1, "local_size: must be odd, not ", p.local_size());
    require(p.local_size() <= kMaxWindow, "local_size: ", p.local_size(), " is too large");
    const int axes = bottom[0].axes();
    if (is_within()) {
      require(axes == 4, bottom_text(param_, 0), " of shape ", bottom[0],
              " must have 4 axes (N, C, H, W) for norm_region: WITHIN_CHANNEL");
    } else {
      require(axes >= 2, bottom_text(param_, 0), " of shape ", bottom[0], " has no channel axis");
    }
    return {bottom[0]};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.accumulates = true;
    return traits;
  }

  Needs plan(Ops& ops, const PlanContext& context) override {
    const LRNParameter& p = param_.lrn_param();
    plan_ = ops.plan(LrnDesc{.x = context.bottom[0],
                             .size = static_cast<int>(p.local_size()),
                             .alpha = p.alpha(),
                             .beta = p.beta(),
                             .k = p.k(),
                             .within = is_within(),
                             .train = context.train});
    return plan_->needs();
  }

  void bind(const Workspace& workspace) override { plan_->bind(workspace); }

  void forward(Ops&, CTensors bottom, Tensors top) override { plan_->forward(bottom[0], top[0]); }

  void backward(Ops&, const BackwardArgs& args) override {
    if (args.dbottom[0])
      plan_->backward(args.bottom[0], args.top[0], args.dtop[0], args.dbottom[0]);
  }

 private:
  bool is_within() const {
    return param_.lrn_param().norm_region() == LRNParameter::WITHIN_CHANNEL;
  }

  std::unique_ptr<LrnPlan> plan_;
};

REGISTER_LAYER("LRN", LrnLayer)

}  // namespace
}  // namespace crema
