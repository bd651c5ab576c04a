// Embed: y = W[index] + b; W [input_dim, num_output], y of the bottom's shape and one axis more.
// BVLC: an index out of range is read out of bounds in release builds; here it is an error.
#include "layers/checks.h"
#include "ops/kernels/gather.h"

namespace crema {
namespace {

class EmbedLayer : public Layer {
 public:
  using Layer::Layer;
  bool allow_force_backward(int) const override { return false; }

  Shapes infer(const Shapes& bottom) override {
    const EmbedParameter& p = param_.embed_param();
    outputs_ = require_outputs(p.has_num_output(), p.num_output());
    require(p.has_input_dim() && p.input_dim() >= 1,
            "input_dim: must be given and at least 1, the number of different indices");
    rows_ = p.input_dim();
    require_countable("weights", Shape{rows_, outputs_});
    params_.resize(p.bias_term() ? 2 : 1);
    declare(params_[0], Shape{rows_, outputs_}, p.weight_filler());
    if (p.bias_term()) declare(params_[1], Shape{outputs_}, p.bias_filler());
    Shape top = bottom[0];
    top.push_back(outputs_);
    require_countable("top", top);
    return {top};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.backward_reads_tops = 0;
    return traits;
  }

  Needs plan(Ops&, const PlanContext& context) override {
    refuse_gradient(param_, context, 0);
    return {};
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    run(ops,
        GatherRows{.table = params_[0].value.f32(),
                   .index = bottom[0].f32(),
                   .bias = params_.size() > 1 ? params_[1].value.f32() : nullptr,
                   .y = top[0].f32(),
                   .fault = ops.fault(),
                   .cols = Divider(outputs_),
                   .rows = static_cast<int>(rows_),
                   .layer = context_.index},
        top[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const CTensor &index = args.bottom[0], &dy = args.dtop[0];
    if (const Grad dw = param_gradient(args, 0)) {
      no_gradient(ops, dw);
      run(ops,
          ScatterColumns{.index = index.f32(),
                         .dy = dy.f32(),
                         .dtable = dw.t.f32(),
                         .count = index.count(),
                         .cols = outputs_,
                         .rows = static_cast<int>(rows_)},
          outputs_);
    }
    if (const Grad db = param_gradient(args, 1)) {
      run_rows(ops, ColumnSums{dy.f32(), db.t.f32(), outputs_, db.how == Write::accumulate},
               outputs_, index.count());
    }
  }

  std::string explain(const Fault& fault) const override {
    return str("index ", fault.value, " at place ", fault.index, " must be in 0..", rows_ - 1,
               " (input_dim ", rows_, ')');
  }

 private:
  int64_t outputs_ = 1, rows_ = 1;
};

REGISTER_LAYER("Embed", EmbedLayer)

}  // namespace
}  // namespace crema
