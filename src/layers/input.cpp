// Input: tops of the written shapes, whose values come from outside (the net owns and sets them).
// BVLC: a top without a shape is left empty until a program reshapes it; here every top needs one.
#include "layers/checks.h"

namespace crema {
namespace {

class InputLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {0, 0, 1, -1}; }

  Shapes infer(const Shapes&) override {
    const auto& shapes = param_.input_param().shape();
    const int tops = param_.top_size();
    require(!shapes.empty(),
            "input_param: needs a shape { dim: ... } for each top, or one for all");
    require(shapes.size() == 1 || shapes.size() == tops,
            "input_param: give 1 shape or one per top (", tops, "), not ", shapes.size());
    Shapes top;
    for (int i = 0; i < tops; ++i) top.push_back(shape_of(shapes.Get(shapes.size() == 1 ? 0 : i)));
    return top;
  }

  LayerTraits traits() const override { return {.has_backward = false}; }
  void forward(Ops&, CTensors, Tensors) override {}
};

REGISTER_LAYER("Input", InputLayer)

}  // namespace
}  // namespace crema
