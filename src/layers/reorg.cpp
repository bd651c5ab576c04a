// Reorg (YOLOv2, Redmon and Farhadi 2017): [N,C,H,W] to [N,C s^2,H/s,W/s], s the stride; reverse
// goes the other way. The order is that of Darknet, on which trained weights rely: memory is read
// as [N,C/s^2,H s,W s], whatever the shape says, and its s x s cells become the outer channels.
#include "layers/permutation.h"

namespace crema {
namespace {

class ReorgLayer : public PermutationLayer {
 public:
  using PermutationLayer::PermutationLayer;

  Shapes infer(const Shapes& bottom) override {
    const ReorgParameter& p = param_.reorg_param();
    const Shape& x = bottom[0];
    require(x.axes() == 4, bottom_text(param_, 0), " of shape ", x, " must have four axes");
    require(p.has_stride(), "stride: missing");
    const int64_t s = p.stride();
    require(s >= 1 && s <= kMaxWindow && x[1] % (s * s) == 0, "stride: its square ", s * s,
            " must divide the ", x[1], " channels of ", bottom_text(param_, 0));
    const int64_t h = x[2], w = x[3], outer = x[1] / (s * s);
    begin_axes();
    add_axis(x[0], x.count(1));
    add_axis(s, w * s);
    add_axis(s, 1);
    add_axis(outer, h * w * s * s);
    add_axis(h, w * s * s);
    add_axis(w, s);
    if (p.reverse()) {
      walk_bottom();
      return {Shape{x[0], outer, h * s, w * s}};
    }
    require(h % s == 0 && w % s == 0, "stride: ", s, " must divide height and width of ",
            bottom_text(param_, 0), ", ", h, " x ", w);
    return {Shape{x[0], x[1] * s * s, h / s, w / s}};
  }
};

REGISTER_LAYER("Reorg", ReorgLayer)

}  // namespace
}  // namespace crema
