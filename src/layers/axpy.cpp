// Axpy (Hu et al., "Squeeze-and-Excitation Networks", 2018): top = scale x + y, one scale for each
// channel of each sample. Bottoms: scale [N, C] or [N, C, 1, 1], x and y [N, C, ...].
#include "ops/kernels/axpy.h"

#include "layers/checks.h"
#include "layers/common.h"

namespace crema {
namespace {

class AxpyLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {3, 3, 1, 1}; }

  Shapes infer(const Shapes& bottom) override {
    const Shape &scale = bottom[0], &x = bottom[1];
    require(x.axes() >= 2, bottom_text(param_, 1), " of shape ", x, " needs a channel axis");
    require(scale.axes() >= 2 && scale[0] == x[0] && scale[1] == x[1] && scale.count(2) == 1,
            bottom_text(param_, 0), " of shape ", scale, " must hold one scale for each of the ",
            x[0], " x ", x[1], " channels of ", bottom_text(param_, 1));
    require(bottom[2] == x, bottom_text(param_, 2), " of shape ", bottom[2],
            " must have the shape of ", bottom_text(param_, 1), ", ", x);
    return {x};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.accumulates = true;
    traits.backward_reads_bottoms = 3;
    traits.backward_reads_tops = 0;
    return traits;
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    run(ops,
        AxpyForward{bottom[0].f32(), bottom[1].f32(), bottom[2].f32(), top[0].f32(),
                    place(bottom[1].desc)},
        top[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const CTensor &x = args.bottom[1], &dy = args.dtop[0];
    const Grad &dscale = args.dbottom[0], &dx = args.dbottom[1], &dother = args.dbottom[2];
    const ChannelOfSample at = place(x.desc);
    if (dscale) {
      run_rows(
          ops,
          AxpyScaleGradient{x.f32(), dy.f32(), dscale.t.f32(), at, dscale.how == Write::accumulate},
          dscale.t.count(), x.shape().count(2));
    }
    if (dx) {
      run(ops,
          AxpyGradient{args.bottom[0].f32(), dy.f32(), dx.t.f32(), at, dx.how == Write::accumulate},
          x.count());
    }
    if (!dother) return;
    dother.how == Write::accumulate ? ops.add(dy, dother.t) : ops.convert(dy, dother.t);
  }

 private:
  static ChannelOfSample place(const TensorDesc& x) {
    return {x.shape[1], x.layout == Layout::nhwc ? 1 : x.shape.count(2), x.shape.count(1)};
  }
};

REGISTER_LAYER("Axpy", AxpyLayer)

}  // namespace
}  // namespace crema
