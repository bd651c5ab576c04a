// Reduction: y = coeff * sum of x, |x| or x^2, or coeff * mean of x, over all axes from `axis` on.
// With a loss_weight it is a loss.
#include "ops/kernels/reduction.h"

#include "layers/checks.h"

namespace crema {
namespace {

class ReductionLayer : public Layer {
 public:
  using Layer::Layer;

  Shapes infer(const Shapes& bottom) override {
    // A scalar has no axes, but there is nothing to choose: it is its own row.
    const int wanted = param_.reduction_param().axis();
    axis_ = bottom[0].axes() == 0 && wanted == 0 ? 0 : bottom[0].canonical(wanted);
    rows_ = bottom[0].count(0, axis_);
    cols_ = bottom[0].count(axis_);
    return {bottom[0].slice(0, axis_)};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    // Whole samples are reduced in any order of their elements.
    traits.any_layout = axis_ <= 1;
    traits.accumulates = true;
    traits.backward_reads_bottoms = kind() == ReduceKind::sum ? 0 : 1;
    traits.backward_reads_tops = 0;
    return traits;
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    run_rows(ops, ReductionRows{bottom[0].f32(), top[0].f32(), cols_, coeff(), kind()}, rows_,
             cols_);
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    run(ops,
        ReductionGradient{.x = args.bottom[0].f32(),
                          .dy = args.dtop[0].f32(),
                          .dx = dx.t.f32(),
                          .cols = Divider(cols_),
                          .coeff = coeff(),
                          .kind = kind(),
                          .accumulate = dx.how == Write::accumulate},
        dx.t.count());
  }

 private:
  ReduceKind kind() const {
    switch (param_.reduction_param().operation()) {
      case ReductionParameter::ASUM:
        return ReduceKind::asum;
      case ReductionParameter::SUMSQ:
        return ReduceKind::sumsq;
      default:
        return ReduceKind::sum;
    }
  }
  float coeff() const {
    const ReductionParameter& p = param_.reduction_param();
    const bool mean = p.operation() == ReductionParameter::MEAN;
    return p.coeff() / (mean ? static_cast<float>(cols_) : 1.0f);
  }

  int axis_ = 0;
  int64_t rows_ = 1, cols_ = 1;
};

REGISTER_LAYER("Reduction", ReductionLayer)

}  // namespace
}  // namespace crema
