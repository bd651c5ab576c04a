// What LSTM and RNN share: bottoms x [T,N,...], cont [T,N], an optional static input [N,...] and,
// with expose_hidden, the initial states [1,N,D]; the projection of x for all steps at once; the
// states that are carried from one forward to the next. A layer loops over T itself, there is no
// inner net.
#pragma once

#include "layers/checks.h"

namespace crema {

class RecurrentLayer : public Layer {
 public:
  Arity arity() const override;
  bool allow_force_backward(int bottom) const override { return bottom != 1; }
  Shapes infer(const Shapes& bottom) override;
  LayerTraits traits() const override;
  Needs plan(Ops& ops, const PlanContext& context) override;
  void bind(const Workspace& workspace) override;

 protected:
  /// gates: blocks of D values that x is projected to. states: h, or h and c.
  RecurrentLayer(const LayerParameter& param, const LayerContext& context, int gates, int states);

  /// Memory that a layer needs beside the common: called in plan().
  virtual void add_memory() = 0;
  virtual void bind_memory(const Workspace& workspace) = 0;
  /// Memory from forward to backward; scratch when no backward will follow.
  int keep(int64_t values);
  int scratch(int64_t values);
  Tensor kept(const Workspace& workspace, int part, const Shape& shape) const;
  Tensor scratch_of(const Workspace& workspace, int part, const Shape& shape) const;

  /// Declares a further parameter, after the common ones (W_x, b, W_static where there is one,
  /// W_h).
  void add_param(const Shape& shape, bool is_bias);
  /// gates [T*N, gates*D] = x * W_x^T + b + static * W_static^T.
  void project_inputs(Ops& ops, CTensors bottom) const;
  /// previous_ [t] = cont * h, and gates [t] += previous_ [t] * W_h^T.
  void add_recurrence(Ops& ops, CTensors bottom, int64_t t, CTensor h) const;
  /// dh_ = cont * (dgates [t] * W_h): what step t gives to the h of the step before it.
  void recurrence_gradient(Ops& ops, CTensors bottom, int64_t t) const;
  /// From dgates_ of all steps to the parameters and the bottoms.
  void input_gradients(Ops& ops, const BackwardArgs& args) const;
  /// State i before the first step: a bottom, or what the last forward left.
  CTensor initial_state(CTensors bottom, int i) const;
  /// Stores state i after the last step, for the next forward or as a top.
  void store_state(Ops& ops, CTensor state, Tensors top, int i) const;

  /// Step t of a blob of T * N rows.
  Tensor step(const Tensor& blob, int64_t t) const;
  CTensor step(const CTensor& blob, int64_t t) const;
  CTensor rows(const CTensor& blob, int64_t rows) const;
  Grad rows(const Grad& gradient, int64_t rows) const;
  CTensor weight(int i) const { return params_[static_cast<size_t>(i)].value; }
  int recurrent_weight() const { return has_static_ ? 3 : 2; }

  int gate_count_, state_count_;
  bool exposes_ = false, has_static_ = false, trains_ = false;
  int64_t steps_ = 0, streams_ = 0, hidden_ = 0, inputs_ = 0, static_inputs_ = 0;
  Tensor gates_, previous_, dgates_, dh_, static_gates_, state_;

 private:
  void check_bottoms(const Shapes& bottom);
  void read_sizes(const Shapes& bottom);
  void declare_params();

  WorkspaceParts parts_;
  int gates_part_ = 0, previous_part_ = 0, dgates_part_ = 0, dh_part_ = 0, static_part_ = 0,
      state_part_ = 0;
};

}  // namespace crema
