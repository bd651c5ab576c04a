// Parameter: the top is a learnable blob of the written shape, which begins as zeros.
#include "layers/checks.h"

namespace crema {
namespace {

class ParameterLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {0, 0, 1, 1}; }

  Shapes infer(const Shapes&) override {
    const Shape shape = shape_of(param_.parameter_param().shape());
    params_.resize(1);
    declare(params_[0], shape, constant_filler(0));
    return {shape};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.backward_reads_tops = 0;
    return traits;
  }

  void forward(Ops& ops, CTensors, Tensors top) override { ops.convert(params_[0].value, top[0]); }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad dw = param_gradient(args, 0);
    if (!dw) return;
    dw.how == Write::accumulate ? ops.add(args.dtop[0], dw.t) : ops.convert(args.dtop[0], dw.t);
  }
};

REGISTER_LAYER("Parameter", ParameterLayer)

}  // namespace
}  // namespace crema
