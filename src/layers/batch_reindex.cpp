// BatchReindex: y[i] = x[index[i]] over the first axis; the gradient of a row is the sum over its
// uses.
#include "layers/checks.h"
#include "ops/kernels/gather.h"

namespace crema {
namespace {

class BatchReindexLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, 2, 1, 1}; }
  bool allow_force_backward(int bottom) const override { return bottom == 0; }

  Shapes infer(const Shapes& bottom) override {
    require(bottom[0].axes() > 0, bottom_text(param_, 0), " needs a first axis");
    require(bottom[1].axes() == 1, bottom_text(param_, 1),
            " must have one axis, the indices, not shape ", bottom[1]);
    rows_ = bottom[0][0];
    cols_ = bottom[0].count(1);
    Shape top = bottom[0];
    top[0] = bottom[1][0];
    require_countable("top", top);
    return {top};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.accumulates = true;
    traits.backward_reads_bottoms = 2;
    traits.backward_reads_tops = 0;
    return traits;
  }

  Needs plan(Ops&, const PlanContext& context) override {
    refuse_gradient(param_, context, 1);
    return {};
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    run(ops,
        GatherRows{.table = bottom[0].f32(),
                   .index = bottom[1].f32(),
                   .bias = nullptr,
                   .y = top[0].f32(),
                   .fault = ops.fault(),
                   .cols = Divider(cols_),
                   .rows = static_cast<int>(rows_),
                   .layer = context_.index},
        top[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    no_gradient(ops, dx);
    run(ops,
        ScatterColumns{.index = args.bottom[1].f32(),
                       .dy = args.dtop[0].f32(),
                       .dtable = dx.t.f32(),
                       .count = args.bottom[1].count(),
                       .cols = cols_,
                       .rows = static_cast<int>(rows_)},
        cols_);
  }

  std::string explain(const Fault& fault) const override {
    return str("index ", fault.value, " at place ", fault.index, " must be in 0..", rows_ - 1,
               ", the rows of ", bottom_text(param_, 0));
  }

 private:
  int64_t rows_ = 1, cols_ = 1;
};

REGISTER_LAYER("BatchReindex", BatchReindexLayer)

}  // namespace
}  // namespace crema
