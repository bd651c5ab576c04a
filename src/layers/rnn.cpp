// RNN: h = tanh(W_x x + b + W_s static + W_h (cont * h)), the top is o = tanh(W_o h + b_o) of every
// step.
#include "layers/recurrent.h"
#include "ops/kernels/gather.h"
#include "ops/kernels/recurrent.h"

namespace crema {
namespace {

class RnnLayer : public RecurrentLayer {
 public:
  RnnLayer(const LayerParameter& param, const LayerContext& context)
      : RecurrentLayer(param, context, 1, 1) {}

  Shapes infer(const Shapes& bottom) override {
    const bool is_first = params_.empty();
    Shapes top = RecurrentLayer::infer(bottom);
    if (is_first) {
      add_param(Shape{hidden_, hidden_}, false);
      add_param(Shape{hidden_}, true);
    }
    return top;
  }

  LayerTraits traits() const override {
    LayerTraits traits = RecurrentLayer::traits();
    traits.backward_reads_tops = 1;
    return traits;
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    project_inputs(ops, bottom);
    for (int64_t t = 0; t < steps_; ++t) {
      const Tensor h = step(hidden_states_, t);
      add_recurrence(ops, bottom, t,
                     t == 0 ? initial_state(bottom, 0) : CTensor(step(hidden_states_, t - 1)));
      run(ops, TanhStep{step(gates_, t).f32(), h.f32()}, h.count());
    }
    const Tensor o = reshaped(top[0], hidden_states_.shape());
    run(ops,
        GateOffsets{.bias = weight(output_weight() + 1).f32(),
                    .each_time = nullptr,
                    .y = o.f32(),
                    .cols = Divider(hidden_),
                    .period = Divider(1)},
        o.count());
    ops.gemm(false, true, 1, hidden_states_, weight(output_weight()), o, Write::accumulate);
    run(ops, TanhStep{o.f32(), o.f32()}, o.count());
    store_state(ops, step(hidden_states_, steps_ - 1), top, 0);
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    output_gradients(ops, args);
    for (int64_t t = steps_; t-- > 0;) {
      run(ops,
          TanhStepGradient{.y = step(hidden_states_, t).f32(),
                           .dy = step(dstates_, t).f32(),
                           .dy_later = t == steps_ - 1 ? nullptr : dh_.f32(),
                           .dx = step(dgates_, t).f32()},
          dh_.count());
      recurrence_gradient(ops, args.bottom, t);
    }
    input_gradients(ops, args);
  }

 protected:
  void add_memory() override {
    const int64_t all = steps_ * streams_ * hidden_;
    states_part_ = keep(all);
    dstates_part_ = scratch(trains_ ? all : 0);
    doutput_part_ = scratch(trains_ ? all : 0);
  }
  void bind_memory(const Workspace& workspace) override {
    const Shape shape{steps_ * streams_, hidden_};
    hidden_states_ = kept(workspace, states_part_, shape);
    dstates_ = scratch_of(workspace, dstates_part_, shape);
    doutput_ = scratch_of(workspace, doutput_part_, shape);
  }

 private:
  int output_weight() const { return recurrent_weight() + 1; }

  void output_gradients(Ops& ops, const BackwardArgs& args) const {
    run(ops,
        TanhStepGradient{.y = args.top[0].f32(),
                         .dy = args.dtop[0] ? args.dtop[0].f32() : nullptr,
                         .dy_later = nullptr,
                         .dx = doutput_.f32()},
        doutput_.count());
    const auto w = static_cast<size_t>(output_weight());
    const Grad dw = param_gradient(args, w), db = param_gradient(args, w + 1);
    if (dw) ops.gemm(true, false, 1, doutput_, hidden_states_, dw.t, dw.how);
    if (db) {
      run_rows(ops, ColumnSums{doutput_.f32(), db.t.f32(), hidden_, db.how == Write::accumulate},
               hidden_, steps_ * streams_);
    }
    ops.gemm(false, false, 1, doutput_, weight(output_weight()), dstates_, Write::overwrite);
  }

  int states_part_ = 0, dstates_part_ = 0, doutput_part_ = 0;
  Tensor hidden_states_, dstates_, doutput_;
};

REGISTER_LAYER("RNN", RnnLayer)

}  // namespace
}  // namespace crema
