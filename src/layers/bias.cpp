// y = x + bias, along axes [axis, axis + num_axes) of x. The bias is a parameter, or bottom 1.
#include "ops/kernels/bias.h"

#include "layers/broadcast.h"

namespace crema {
namespace {

class BiasLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {1, 2, 1, 1}; }

  Shapes infer(const Shapes& bottom) override {
    const BiasParameter& p = param_.bias_param();
    learns_ = bottom.size() == 1;
    along_ = learns_ ? read_broadcast(bottom[0], p.axis(), p.num_axes())
                     : match_broadcast(param_, bottom, p.axis());
    params_.resize(learns_ ? 1 : 0);
    if (learns_) declare(params_[0], along_.shape, p.filler());
    return {bottom[0]};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = learns_ && along_.any_layout();
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    traits.can_overwrite_bottom = traits.accumulates = true;
    return traits;
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    const float* const bias = learns_ ? params_[0].value.f32() : bottom[1].f32();
    run(ops, BiasForward{bottom[0].f32(), bias, top[0].f32(), along_.middle(bottom[0].desc)},
        top[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const CTensor& dy = args.dtop[0];
    // Two bottoms may be one blob: in their order, the second then adds. A learned bias: the
    // gradient of bottom 0 may lie in the top's, and is the same.
    backward_to_x(ops, args);
    if (const Grad dbias = learns_ ? param_gradient(args, 0) : args.dbottom[1]) {
      const BiasGradient sum{dy.f32(), dbias.t.f32(), along_.middle(dy.desc),
                             dbias.how == Write::accumulate};
      run_rows(ops, sum, along_.count, dy.count() / along_.count);
    }
  }

 private:
  static void backward_to_x(Ops& ops, const BackwardArgs& args) {
    const CTensor& dy = args.dtop[0];
    const Grad& dx = args.dbottom[0];
    if (!dx || dx.t.data == dy.data) return;
    if (dx.how == Write::accumulate) {
      ops.add(dy, dx.t);
    } else {
      ops.convert(dy, dx.t);
    }
  }

  bool learns_ = true;
  Broadcast along_;
};

REGISTER_LAYER("Bias", BiasLayer)

}  // namespace
}  // namespace crema
