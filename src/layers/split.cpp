// Split: each top is the bottom; the bottom's gradient is the sum of the tops'.
#include "layers/alias_layer.h"

namespace crema {
namespace {

class SplitLayer : public AliasLayer {
 public:
  using AliasLayer::AliasLayer;
  Arity arity() const override { return {1, 1, 1, -1}; }
  Shapes infer(const Shapes& bottom) override {
    return Shapes(static_cast<size_t>(param_.top_size()), bottom[0]);
  }
  LayerTraits traits() const override {
    LayerTraits traits = AliasLayer::traits();
    traits.any_layout = true;
    return traits;
  }
};

REGISTER_LAYER("Split", SplitLayer)

}  // namespace
}  // namespace crema
