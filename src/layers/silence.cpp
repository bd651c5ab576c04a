// Silence: swallows its bottoms, so that they are no outputs; their gradient is 0.
#include "layers/common.h"

namespace crema {
namespace {

class SilenceLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {1, -1, 0, 0}; }
  Shapes infer(const Shapes&) override { return {}; }
  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.accumulates = true;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    return traits;
  }
  void forward(Ops&, CTensors, Tensors) override {}
  void backward(Ops& ops, const BackwardArgs& args) override {
    for (const Grad& dx : args.dbottom) no_gradient(ops, dx);
  }
};

REGISTER_LAYER("Silence", SilenceLayer)

}  // namespace
}  // namespace crema
