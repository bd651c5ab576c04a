// LSTMUnit: one step of LSTM from c_prev [1,N,D], gates [1,N,4D] in the order i, f, o, g, and cont
// [1,N] to c and h [1,N,D].
#include "layers/checks.h"
#include "ops/kernels/recurrent.h"

namespace crema {
namespace {

class LstmUnitLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {3, 3, 2, 2}; }
  bool allow_force_backward(int bottom) const override { return bottom != 2; }

  Shapes infer(const Shapes& bottom) override {
    const Shape& c = bottom[0];
    require(c.axes() == 3 && c[0] == 1, bottom_text(param_, 0), " of shape ", c,
            " must have shape 1 N D");
    require(bottom[1] == Shape({1, c[1], 4 * c[2]}), bottom_text(param_, 1), " of shape ",
            bottom[1], " must have shape 1 ", c[1], ' ', 4 * c[2], ", the four gates");
    require(bottom[2] == Shape({1, c[1]}), bottom_text(param_, 2), " of shape ", bottom[2],
            " must have shape 1 ", c[1]);
    hidden_ = c[2];
    count_ = c.count();
    return {c, c};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.backward_reads_tops = 1;
    return traits;
  }

  Needs plan(Ops&, const PlanContext& context) override {
    refuse_gradient(param_, context, 2);
    parts_.clear();
    const size_t bytes = context.train ? static_cast<size_t>(count_) * sizeof(float) : 0;
    cell_part_ = parts_.add({.scratch = bytes});
    gates_part_ = parts_.add({.scratch = 4 * bytes});
    return parts_.total();
  }

  void bind(const Workspace& workspace) override {
    unused_cell_ = f32_of(parts_.part(workspace, cell_part_).scratch, {});
    unused_gates_ = f32_of(parts_.part(workspace, gates_part_).scratch, {});
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    run(ops,
        LstmStep{.c_prev = bottom[0].f32(),
                 .gates = bottom[1].f32(),
                 .cont = bottom[2].f32(),
                 .c = top[0].f32(),
                 .h = top[1].f32(),
                 .hidden = Divider(hidden_)},
        count_);
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Tensor &dc = args.dbottom[0].t, &dgates = args.dbottom[1].t;
    run(ops,
        LstmStepGradient{.c_prev = args.bottom[0].f32(),
                         .gates = args.bottom[1].f32(),
                         .cont = args.bottom[2].f32(),
                         .c = args.top[0].f32(),
                         .dh_top = args.dtop[1] ? args.dtop[1].f32() : nullptr,
                         .dh_later = nullptr,
                         .dc_later = args.dtop[0] ? args.dtop[0].f32() : nullptr,
                         .dgates = dgates ? dgates.f32() : unused_gates_.f32(),
                         .dc_prev = dc ? dc.f32() : unused_cell_.f32(),
                         .hidden = Divider(hidden_)},
        count_);
  }

 private:
  int64_t hidden_ = 1, count_ = 0;
  WorkspaceParts parts_;
  int cell_part_ = 0, gates_part_ = 0;
  Tensor unused_cell_, unused_gates_;
};

REGISTER_LAYER("LSTMUnit", LstmUnitLayer)

}  // namespace
}  // namespace crema
