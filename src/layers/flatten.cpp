// Flatten: the axes from axis to end_axis become one.
#include "layers/alias_layer.h"

namespace crema {
namespace {

class FlattenLayer : public AliasLayer {
 public:
  using AliasLayer::AliasLayer;
  Shapes infer(const Shapes& bottom) override {
    const FlattenParameter& p = param_.flatten_param();
    const int first = bottom[0].canonical(p.axis()), last = bottom[0].canonical(p.end_axis());
    require(first <= last, "axis ", p.axis(), " must not lie behind end_axis ", p.end_axis(),
            " (bottom shape ", bottom[0], ')');
    Shape top = bottom[0].slice(0, first);
    top.push_back(bottom[0].count(first, last + 1));
    for (int i = last + 1; i < bottom[0].axes(); ++i) top.push_back(bottom[0][i]);
    return {top};
  }
};

REGISTER_LAYER("Flatten", FlattenLayer)

}  // namespace
}  // namespace crema
