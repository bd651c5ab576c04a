// HingeLoss: loss = sum over samples and classes of max(0, 1 - t * x) / N (L1) or of its square
// (L2), t = 1 for the label and -1 for the other classes.
#include "layers/sample_loss.h"
#include "ops/kernels/label_loss.h"

namespace crema {
namespace {

class HingeLossLayer : public SampleLoss {
 public:
  using SampleLoss::SampleLoss;

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    run_rows(ops,
             HingeLoss{.x = bottom[0].f32(),
                       .labels = bottom[1].f32(),
                       .loss = top[0].f32(),
                       .fault = ops.fault(),
                       .classes = Divider(classes_),
                       .scale = 1 / divisor(),
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
                      .scale = 1 / divisor(),
                      .squared = is_squared(),
                      .accumulate = dx.how == Write::accumulate},
        dx.t.count());
  }

 private:
  bool is_squared() const { return param_.hinge_loss_param().norm() == HingeLossParameter::L2; }
};

REGISTER_LAYER("HingeLoss", HingeLossLayer)

}  // namespace
}  // namespace crema
