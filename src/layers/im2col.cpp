// y [.., C * window, out...]: each window of x as a column, the padding as zeros; its gradient adds
// the columns up.
#include "ops/kernels/im2col.h"

#include "layers/checks.h"
#include "layers/common.h"
#include "layers/window.h"

namespace crema {
namespace {

class Im2colLayer : public Layer {
 public:
  using Layer::Layer;

  Shapes infer(const Shapes& bottom) override {
    const ConvShape shape = read_conv_shape(param_.convolution_param(), bottom[0]);
    const SpatialDims out = conv_output(shape);
    Shape window;
    Shape top = bottom[0].slice(0, shape.axis);
    windows_ = {};
    windows_.axes = out.axes;
    for (int i = 0; i < out.axes; ++i) {
      windows_.size[i] = shape.size[i];
      windows_.out[i] = out[i];
      windows_.kernel[i] = shape.kernel[i];
      windows_.stride[i] = shape.stride[i];
      windows_.pad[i] = shape.pad[i];
      windows_.dilation[i] = shape.dilation[i];
      windows_.outputs *= out[i];
      window.push_back(shape.kernel[i]);
    }
    require_countable("kernel_size", window);
    windows_.window = window.count();
    require_countable("top", {shape.channels, windows_.window});
    top.push_back(shape.channels * windows_.window);
    for (int i = 0; i < out.axes; ++i) top.push_back(out[i]);
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
    run(ops, Im2colForward{bottom[0].f32(), top[0].f32(), windows_}, top[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    run(ops, Im2colBackward{args.dtop[0].f32(), dx.t.f32(), windows_, dx.how == Write::accumulate},
        dx.t.count());
  }

 private:
  Windows windows_;
};

REGISTER_LAYER("Im2col", Im2colLayer)

}  // namespace
}  // namespace crema
