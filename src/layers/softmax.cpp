// Softmax: y = e^(x - max) / sum of e^(x - max) along axis.
#include <memory>

#include "layers/checks.h"

namespace crema {
namespace {

class SoftmaxLayer : public Layer {
 public:
  using Layer::Layer;

  Shapes infer(const Shapes& bottom) override {
    axis_ = bottom[0].canonical(param_.softmax_param().axis());
    return bottom;
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.accumulates = true;
    traits.backward_reads_bottoms = 0;
    return traits;
  }

  Needs plan(Ops& ops, const PlanContext& context) override {
    softmax_ = ops.plan(SoftmaxDesc{.x = context.bottom[0], .axis = axis_});
    return softmax_->needs();
  }

  void bind(const Workspace& workspace) override { softmax_->bind(workspace); }
  void forward(Ops&, CTensors bottom, Tensors top) override {
    softmax_->forward(bottom[0], top[0]);
  }
  void backward(Ops&, const BackwardArgs& args) override {
    if (args.dbottom[0]) softmax_->backward(args.top[0], args.dtop[0], args.dbottom[0]);
  }

 private:
  int axis_ = 1;
  std::unique_ptr<SoftmaxPlan> softmax_;
};

REGISTER_LAYER("Softmax", SoftmaxLayer)

}  // namespace
}  // namespace crema
