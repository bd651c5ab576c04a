// LSTM: gates i, f, o, g = W_x x + b + W_s static + W_h (cont * h); c = cont * s(f) * c + s(i) *
// tanh(g), h = s(o) * tanh(c), s the sigmoid; the top is h of every step. cont 0 begins a sequence
// anew.
#include "layers/recurrent.h"
#include "ops/kernels/recurrent.h"

namespace crema {
namespace {

class LstmLayer : public RecurrentLayer {
 public:
  LstmLayer(const LayerParameter& param, const LayerContext& context)
      : RecurrentLayer(param, context, 4, 2) {}

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    const TensorDesc state{.shape = Shape{streams_, hidden_}};
    project_inputs(ops, bottom);
    ops.convert({initial_state(bottom, 1).data, state}, {cells_.data, state});
    for (int64_t t = 0; t < steps_; ++t) {
      const Tensor h = step(top[0], t);
      add_recurrence(ops, bottom, t,
                     t == 0 ? initial_state(bottom, 0) : CTensor(step(top[0], t - 1)));
      run(ops,
          LstmStep{.c_prev = cell(t),
                   .gates = step(gates_, t).f32(),
                   .cont = bottom[1].f32() + t * streams_,
                   .c = cell(t + 1),
                   .h = h.f32(),
                   .hidden = Divider(hidden_)},
          h.count());
    }
    store_state(ops, step(top[0], steps_ - 1), top, 0);
    store_state(ops, {cell(steps_), state}, top, 1);
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    for (int64_t t = steps_; t-- > 0;) {
      const bool is_last = t == steps_ - 1;
      run(ops,
          LstmStepGradient{.c_prev = cell(t),
                           .gates = step(gates_, t).f32(),
                           .cont = args.bottom[1].f32() + t * streams_,
                           .c = cell(t + 1),
                           .dh_top = args.dtop[0] ? step(args.dtop[0], t).f32() : nullptr,
                           .dh_later = is_last ? nullptr : dh_.f32(),
                           .dc_later = is_last ? nullptr : dc_.f32(),
                           .dgates = step(dgates_, t).f32(),
                           .dc_prev = dc_.f32(),
                           .hidden = Divider(hidden_)},
          dc_.count());
      recurrence_gradient(ops, args.bottom, t);
    }
    input_gradients(ops, args);
  }

 protected:
  void add_memory() override {
    cells_part_ = keep((steps_ + 1) * streams_ * hidden_);
    dc_part_ = scratch(trains_ ? streams_ * hidden_ : 0);
  }
  void bind_memory(const Workspace& workspace) override {
    cells_ = kept(workspace, cells_part_, Shape{steps_ + 1, streams_, hidden_});
    dc_ = scratch_of(workspace, dc_part_, Shape{streams_, hidden_});
  }

 private:
  /// c before step t.
  float* cell(int64_t t) const { return cells_.f32() + t * streams_ * hidden_; }

  int cells_part_ = 0, dc_part_ = 0;
  Tensor cells_, dc_;
};

REGISTER_LAYER("LSTM", LstmLayer)

}  // namespace
}  // namespace crema
