// Upsample is two layers. With a second bottom it is SegNet's (Badrinarayanan et al. 2015): each
// value goes to the place that the mask, a max pooling's second top, names; the rest is 0. With one
// bottom it is YOLO's (Redmon and Farhadi 2018): every value is repeated scale x scale times.
#include "ops/kernels/upsample.h"

#include "layers/checks.h"
#include "layers/common.h"
#include "layers/two_forms.h"

namespace crema {
namespace {

void require_picture(const LayerParameter& param, const Shape& x) {
  require(x.axes() == 4, bottom_text(param, 0), " of shape ", x, " must have four axes");
}

class UnpoolLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, 2, 1, 1}; }
  bool allow_force_backward(int bottom) const override { return bottom == 0; }

  Shapes infer(const Shapes& bottom) override {
    const UpsampleParameter& p = param_.upsample_param();
    const Shape& x = bottom[0];
    require_picture(param_, x);
    require(bottom[1] == x, bottom_text(param_, 1), " of shape ", bottom[1],
            " is the mask: it must have the shape of ", bottom_text(param_, 0), ", ", x);
    require(p.has_upsample_h() == p.has_upsample_w(),
            "upsample_h and upsample_w must be given together");
    require(p.has_scale_h() == p.has_scale_w(), "scale_h and scale_w must be given together");
    const int64_t scale = p.has_scale() ? p.scale() : 2;
    int64_t h = x[2] * (p.has_scale_h() ? p.scale_h() : scale) - (p.pad_out_h() ? 1 : 0);
    int64_t w = x[3] * (p.has_scale_w() ? p.scale_w() : scale) - (p.pad_out_w() ? 1 : 0);
    if (p.has_upsample_h()) {
      h = p.upsample_h();
      w = p.upsample_w();
    }
    require(h >= 1 && w >= 1, "upsample_h, upsample_w or scale: the top would be ", h, " x ", w);
    const Shape top{x[0], x[1], h, w};
    require_countable("top", top);
    inputs_ = x.count(2);
    outputs_ = h * w;
    return {top};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.accumulates = true;
    traits.backward_reads_bottoms = 2;
    traits.backward_reads_tops = 0;
    return traits;
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    ops.fill(0, top[0]);
    run(ops,
        UnpoolForward{bottom[0].f32(), bottom[1].f32(), top[0].f32(), ops.fault(), inputs_,
                      outputs_, context_.index},
        bottom[0].shape().count(0, 2));
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    no_gradient(ops, args.dbottom[1]);
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    run(ops,
        UnpoolBackward{args.bottom[1].f32(), args.dtop[0].f32(), dx.t.f32(), inputs_, outputs_,
                       dx.how == Write::accumulate},
        dx.t.count());
  }

  std::string explain(const Fault& fault) const override {
    return str("place ", fault.value, " in the mask must be in 0..", outputs_ - 1,
               ", the places of a plane of the top: upsample_h and upsample_w must be the sizes ",
               "that the pooling saw");
  }

 private:
  int64_t inputs_ = 1, outputs_ = 1;
};

class NearestLayer : public Layer {
 public:
  using Layer::Layer;

  Shapes infer(const Shapes& bottom) override {
    const UpsampleParameter& p = param_.upsample_param();
    require_picture(param_, bottom[0]);
    require(!p.has_upsample_h() && !p.has_upsample_w() && !p.has_scale_h() && !p.has_scale_w(),
            "upsample_h, upsample_w, scale_h and scale_w need a second bottom, the pooling's mask");
    scale_ = p.has_scale() ? p.scale() : 1;
    require(scale_ >= 1, "scale: must be at least 1");
    Shape top = bottom[0];
    for (int axis = 2; axis < 4; ++axis) top[axis] *= scale_;
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
    const Shape& x = bottom[0].shape();
    run(ops, NearestForward{bottom[0].f32(), top[0].f32(), x[2], x[3], scale_}, top[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    const Shape& x = dx.t.shape();
    run(ops,
        NearestBackward{args.dtop[0].f32(), dx.t.f32(), x[2], x[3], scale_,
                        dx.how == Write::accumulate},
        dx.t.count());
  }

 private:
  int64_t scale_ = 1;
};

bool has_mask(const LayerParameter& param) { return param.bottom_size() > 1; }
const TwoFormsRegistrar<UnpoolLayer, NearestLayer> registrar("Upsample", has_mask);

}  // namespace
}  // namespace crema
