// Reverse (OCR forks): y[.., i, ..] = x[.., size - 1 - i, ..] along one axis.
#include "layers/permutation.h"

namespace crema {
namespace {

class ReverseLayer : public PermutationLayer {
 public:
  using PermutationLayer::PermutationLayer;

  Shapes infer(const Shapes& bottom) override {
    const Shape& x = bottom[0];
    const int written = param_.reverse_param().axis();
    require(-x.axes() <= written && written < x.axes(), "axis: ", written, " does not exist in ",
            bottom_text(param_, 0), " of shape ", x);
    const int axis = x.canonical(written);
    begin_axes();
    add_axis(x.count(0, axis), x.count(axis));
    add_axis(x[axis], -x.count(axis + 1));
    add_axis(x.count(axis + 1), 1);
    return {x};
  }
};

REGISTER_LAYER("Reverse", ReverseLayer)

}  // namespace
}  // namespace crema
