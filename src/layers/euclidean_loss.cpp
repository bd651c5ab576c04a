// EuclideanLoss: loss = sum (a - b)^2 / (2 N), N the size of the first axis; the gradient goes to
// both bottoms.
#include "ops/kernels/euclidean_loss.h"

#include <algorithm>

#include "layers/checks.h"

namespace crema {
namespace {

class EuclideanLossLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, 2, 1, 1}; }
  bool is_loss() const override { return true; }

  Shapes infer(const Shapes& bottom) override {
    const Shape &a = bottom[0], &b = bottom[1];
    require(a.axes() > 0 && b.axes() > 0, "both bottoms need a first axis, the samples");
    require(a[0] == b[0] && a.count() == b.count(), bottom_text(param_, 1), " of shape ", b,
            " must have as many samples and values as ", bottom_text(param_, 0), ", ", a);
    are_alike_ = a == b;
    samples_ = static_cast<float>(std::max<int64_t>(1, a[0]));
    return {Shape{}};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = are_alike_;
    traits.accumulates = true;
    traits.backward_reads_tops = 0;
    return traits;
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    run_rows(ops, SquaredDistance{bottom[0].f32(), bottom[1].f32(), top[0].f32(), 0.5f / samples_},
             1, bottom[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    for (size_t i = 0; i < 2; ++i) {
      const Grad& dx = args.dbottom[i];
      if (!dx) continue;
      run(ops,
          DistanceGradient{.a = args.bottom[i].f32(),
                           .b = args.bottom[1 - i].f32(),
                           .dloss = args.dtop[0].f32(),
                           .dx = dx.t.f32(),
                           .scale = 1 / samples_,
                           .accumulate = dx.how == Write::accumulate},
          dx.t.count());
    }
  }

 private:
  bool are_alike_ = false;
  float samples_ = 1;
};

REGISTER_LAYER("EuclideanLoss", EuclideanLossLayer)

}  // namespace
}  // namespace crema
