// y = x * scale + bias, along axes [axis, axis + num_axes) of x. The scale is a parameter, or
// bottom 1.
#include "ops/kernels/scale.h"

#include "layers/broadcast.h"
#include "ops/kernels/bias.h"

namespace crema {
namespace {

class ScaleLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {1, 2, 1, 1}; }

  Shapes infer(const Shapes& bottom) override {
    const ScaleParameter& p = param_.scale_param();
    learns_scale_ = bottom.size() == 1;
    along_ = learns_scale_ ? read_broadcast(bottom[0], p.axis(), p.num_axes())
                           : match_broadcast(param_, bottom, p.axis());
    params_.resize((learns_scale_ ? 1u : 0u) + (p.bias_term() ? 1u : 0u));
    if (learns_scale_)
      declare(params_[0], along_.shape, p.has_filler() ? p.filler() : constant_filler(1));
    if (p.bias_term()) declare(params_.back(), along_.shape, p.bias_filler());
    return {bottom[0]};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = learns_scale_ && along_.any_layout();
    traits.backward_reads_tops = 0;
    traits.can_overwrite_bottom = traits.accumulates = true;
    return traits;
  }

  std::span<Param> channel_affine() override {
    return is_per_channel() ? params() : std::span<Param>();
  }
  bool is_channel_map() const override { return is_per_channel(); }
  void channel_map(Ops& ops, Tensor scale, Tensor shift) override {
    ops.convert(params_[0].value, scale);
    if (has_bias()) {
      ops.convert(params_[1].value, shift);
    } else {
      ops.fill(0, shift);
    }
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    const float* const bias = has_bias() ? params_.back().value.f32() : nullptr;
    run(ops,
        ScaleForward{bottom[0].f32(), scale(bottom), bias, top[0].f32(),
                     along_.middle(bottom[0].desc)},
        top[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const CTensor& x = args.bottom[0];
    const CTensor& dy = args.dtop[0];
    const MiddleAxis axis = along_.middle(x.desc);
    const int64_t cols = x.count() / along_.count;
    // A learned scale: the gradient of bottom 0 comes last, since it may lie in the top's. Two
    // bottoms may be one blob: in their order, the second then adds.
    if (!learns_scale_) backward_to_x(ops, args);
    const Grad dscale = learns_scale_ ? param_gradient(args, 0) : args.dbottom[1];
    if (dscale) {
      run_rows(
          ops,
          ScaleGradient{x.f32(), dy.f32(), dscale.t.f32(), axis, dscale.how == Write::accumulate},
          along_.count, cols);
    }
    const Grad dbias = has_bias() ? param_gradient(args, params_.size() - 1) : Grad();
    if (dbias) {
      run_rows(ops, BiasGradient{dy.f32(), dbias.t.f32(), axis, dbias.how == Write::accumulate},
               along_.count, cols);
    }
    if (learns_scale_) backward_to_x(ops, args);
  }

 private:
  void backward_to_x(Ops& ops, const BackwardArgs& args) const {
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    run(ops,
        ScaleBackward{args.dtop[0].f32(), scale(args.bottom), dx.t.f32(),
                      along_.middle(args.bottom[0].desc), dx.how == Write::accumulate},
        dx.t.count());
  }

  bool has_bias() const { return param_.scale_param().bias_term(); }
  bool is_per_channel() const {
    return learns_scale_ && along_.axis == 1 && along_.shape.axes() == 1;
  }
  const float* scale(CTensors bottom) const {
    return learns_scale_ ? params_[0].value.f32() : bottom[1].f32();
  }

  bool learns_scale_ = true;
  Broadcast along_;
};

REGISTER_LAYER("Scale", ScaleLayer)

}  // namespace
}  // namespace crema
