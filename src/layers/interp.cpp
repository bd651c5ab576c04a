// Interp (DeepLab; Chen et al. 2015): bilinear resizing that keeps the corners, y(h, w) = x(h (H -
// 1) / (H' - 1), ...). pad_beg and pad_end, at most 0, cut the borders off first. The size is
// height x width, or from H: shrink (H - 1) / shrink_factor + 1, then zoom H + (H - 1)(zoom_factor
// - 1).
#include "ops/kernels/interp.h"

#include "layers/checks.h"
#include "layers/common.h"

namespace crema {
namespace {

class InterpLayer : public Layer {
 public:
  using Layer::Layer;

  Shapes infer(const Shapes& bottom) override {
    const InterpParameter& p = param_.interp_param();
    const Shape& x = bottom[0];
    require(x.axes() == 4, bottom_text(param_, 0), " of shape ", x, " must have four axes");
    require(p.pad_beg() <= 0 && p.pad_end() <= 0,
            "pad_beg and pad_end: only cropping (0 or below) is supported");
    require(p.shrink_factor() >= 1, "shrink_factor: must be at least 1");
    require(p.zoom_factor() >= 1, "zoom_factor: must be at least 1");
    const bool has_size = p.has_height() || p.has_width();
    require(!has_size || (p.height() >= 1 && p.width() >= 1),
            "height and width: must be given together and at least 1");
    require(!has_size || (!p.has_shrink_factor() && !p.has_zoom_factor()),
            "height and width exclude shrink_factor and zoom_factor");
    require(has_size || p.has_shrink_factor() || p.has_zoom_factor(),
            "needs height and width, zoom_factor or shrink_factor");
    const int64_t cut = int64_t{p.pad_beg()} + p.pad_end();
    require(x[2] + cut >= 1 && x[3] + cut >= 1, "pad_beg and pad_end: ", -cut, " are cut off, but ",
            bottom_text(param_, 0), " is ", x[2], " x ", x[3]);
    grid_.height = x[2];
    grid_.width = x[3];
    grid_.crop = -p.pad_beg();
    grid_.used_h = x[2] + cut;
    grid_.used_w = x[3] + cut;
    grid_.out_h = has_size ? p.height() : resized(grid_.used_h);
    grid_.out_w = has_size ? p.width() : resized(grid_.used_w);
    const Shape top{x[0], x[1], grid_.out_h, grid_.out_w};
    require_countable("top", top);
    return {top};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.accumulates = true;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    return traits;
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    run(ops, InterpForward{bottom[0].f32(), top[0].f32(), grid_}, top[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    no_gradient(ops, dx);
    run(ops, InterpBackward{args.dtop[0].f32(), dx.t.f32(), grid_}, dx.t.shape().count(0, 2));
  }

 private:
  int64_t resized(int64_t size) const {
    const InterpParameter& p = param_.interp_param();
    const int64_t shrunk = (size - 1) / p.shrink_factor() + 1;
    return shrunk + (shrunk - 1) * (int64_t{p.zoom_factor()} - 1);
  }

  InterpGrid grid_{};
};

REGISTER_LAYER("Interp", InterpLayer)

}  // namespace
}  // namespace crema
