// y = x > 0 ? x : slope * x, the slope a parameter per channel (axis 1), or one for all with
// channel_shared.
#include "ops/kernels/prelu.h"

#include "layers/broadcast.h"

namespace crema {
namespace {

class PreluLayer : public Layer {
 public:
  using Layer::Layer;

  Shapes infer(const Shapes& bottom) override {
    const PReLUParameter& p = param_.prelu_param();
    require(bottom[0].axes() >= 2, bottom_text(param_, 0), " of shape ", bottom[0],
            " must have at least 2 axes");
    along_ = read_broadcast(bottom[0], 1, p.channel_shared() ? 0 : 1);
    params_.resize(1);
    declare(params_[0], along_.shape, p.has_filler() ? p.filler() : constant_filler(0.25f));
    return {bottom[0]};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.can_overwrite_bottom = traits.accumulates = true;
    traits.backward_reads_tops = 0;
    return traits;
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    run(ops, PreluForward{bottom[0].f32(), slope(), top[0].f32(), along_.middle(bottom[0].desc)},
        top[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const CTensor& x = args.bottom[0];
    const CTensor& dy = args.dtop[0];
    const MiddleAxis axis = along_.middle(x.desc);
    // The gradient of the bottom comes last: it may lie in the top's.
    if (const Grad dslope = param_gradient(args, 0)) {
      run_rows(
          ops,
          PreluGradient{x.f32(), dy.f32(), dslope.t.f32(), axis, dslope.how == Write::accumulate},
          along_.count, x.count() / along_.count);
    }
    if (const Grad& dx = args.dbottom[0]) {
      run(ops,
          PreluBackward{x.f32(), slope(), dy.f32(), dx.t.f32(), axis, dx.how == Write::accumulate},
          x.count());
    }
  }

 private:
  const float* slope() const { return params_[0].value.f32(); }

  Broadcast along_;
};

REGISTER_LAYER("PReLU", PreluLayer)

}  // namespace
}  // namespace crema
