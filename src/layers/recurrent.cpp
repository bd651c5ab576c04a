// Products over all time steps are one gemm; only what depends on the step before is looped.
// BVLC: gradients of the exposed final states are dropped and those of exposed initial states left
// as they were; here the former are dropped too (a gradient never crosses a batch) and the latter
// are 0.
#include "layers/recurrent.h"

#include <glog/logging.h>

#include "ops/kernels/gather.h"
#include "ops/kernels/recurrent.h"

namespace crema {

RecurrentLayer::RecurrentLayer(const LayerParameter& param, const LayerContext& context, int gates,
                               int states)
    : Layer(param, context), gate_count_(gates), state_count_(states) {
  exposes_ = param.recurrent_param().expose_hidden();
  LOG_IF(WARNING, param.recurrent_param().debug_info())
      << "layer \"" << param.name() << "\" (" << param.type() << "): debug_info of recurrent_param "
      << "does nothing, for there is no inner net; debug_info of the net shows this layer's blobs";
}

Arity RecurrentLayer::arity() const {
  const int exposed = exposes_ ? state_count_ : 0;
  return {2 + exposed, 3 + exposed, 1 + exposed, 1 + exposed};
}

void RecurrentLayer::read_sizes(const Shapes& bottom) {
  require(bottom[0].axes() >= 2, bottom_text(param_, 0), " of shape ", bottom[0],
          " must begin with two axes, time and streams");
  require(steps_ == 0 || steps_ == bottom[0][0],
          "the number of time steps is fixed at set-up: ", steps_, ", not ", bottom[0][0]);
  has_static_ = static_cast<int>(bottom.size()) > arity().min_bottoms;
  require(bottom[0].count() > 0, bottom_text(param_, 0), " of shape ", bottom[0], " is empty");
  hidden_ = require_outputs(param_.recurrent_param().has_num_output(),
                            param_.recurrent_param().num_output());
  steps_ = bottom[0][0];
  streams_ = bottom[0][1];
  inputs_ = bottom[0].count(2);
  static_inputs_ = has_static_ ? bottom[2].count(1) : 0;
}

void RecurrentLayer::check_bottoms(const Shapes& bottom) {
  require(bottom[1] == Shape({steps_, streams_}), bottom_text(param_, 1), " (cont) of shape ",
          bottom[1], " must have shape ", steps_, ' ', streams_, ", one value per step and stream");
  require(!has_static_ || (bottom[2].axes() > 0 && bottom[2][0] == streams_),
          bottom_text(param_, 2), " of shape ", bottom[2], " must have one row for each of the ",
          streams_, " streams");
  for (size_t i = bottom.size() - static_cast<size_t>(exposes_ ? state_count_ : 0);
       i < bottom.size(); ++i) {
    require(bottom[i] == Shape({1, streams_, hidden_}), bottom_text(param_, static_cast<int>(i)),
            " of shape ", bottom[i], " must have the state's shape, 1 ", streams_, ' ', hidden_);
  }
}

void RecurrentLayer::add_param(const Shape& shape, bool is_bias) {
  require_countable("weights", shape);
  const RecurrentParameter& p = param_.recurrent_param();
  params_.emplace_back();
  declare(params_.back(), shape, is_bias ? p.bias_filler() : p.weight_filler());
}

void RecurrentLayer::declare_params() {
  const int64_t rows = gate_count_ * hidden_;
  add_param(Shape{rows, inputs_}, false);
  add_param(Shape{rows}, true);
  if (has_static_) add_param(Shape{rows, static_inputs_}, false);
  add_param(Shape{rows, hidden_}, false);
}

Shapes RecurrentLayer::infer(const Shapes& bottom) {
  read_sizes(bottom);
  check_bottoms(bottom);
  if (params_.empty()) declare_params();
  require(params_[0].shape[1] == inputs_ && (!has_static_ || params_[2].shape[1] == static_inputs_),
          "the number of input values is fixed at set-up");
  Shapes top{Shape{steps_, streams_, hidden_}};
  require_countable("gates", Shape{steps_, streams_, hidden_, gate_count_});
  for (int i = 0; exposes_ && i < state_count_; ++i) top.push_back(Shape{1, streams_, hidden_});
  return top;
}

LayerTraits RecurrentLayer::traits() const {
  LayerTraits traits;
  traits.accumulates = true;
  traits.backward_reads_bottoms = has_static_ ? 7 : 3;
  traits.backward_reads_tops = 0;
  traits.repeatable = exposes_;
  return traits;
}

int RecurrentLayer::keep(int64_t values) {
  const size_t bytes = static_cast<size_t>(values) * sizeof(float);
  return parts_.add(trains_ ? Needs{.saved = bytes} : Needs{.scratch = bytes});
}

int RecurrentLayer::scratch(int64_t values) {
  return parts_.add({.scratch = static_cast<size_t>(values) * sizeof(float)});
}

Tensor RecurrentLayer::kept(const Workspace& workspace, int part, const Shape& shape) const {
  const Workspace own = parts_.part(workspace, part);
  return f32_of(trains_ ? own.saved : own.scratch, {.shape = shape});
}

Tensor RecurrentLayer::scratch_of(const Workspace& workspace, int part, const Shape& shape) const {
  return f32_of(parts_.part(workspace, part).scratch, {.shape = shape});
}

Needs RecurrentLayer::plan(Ops&, const PlanContext& context) {
  refuse_gradient(param_, context, 1);
  trains_ = context.train;
  parts_.clear();
  const int64_t all = steps_ * streams_, width = gate_count_ * hidden_;
  gates_part_ = keep(all * width);
  previous_part_ = keep(all * hidden_);
  dgates_part_ = scratch(trains_ ? all * width : 0);
  dh_part_ = scratch(trains_ ? streams_ * hidden_ : 0);
  static_part_ = scratch(has_static_ ? streams_ * width : 0);
  const int64_t state = exposes_ ? 0 : state_count_ * streams_ * hidden_;
  state_part_ = parts_.add({.state = static_cast<size_t>(state) * sizeof(float)});
  add_memory();
  return parts_.total();
}

void RecurrentLayer::bind(const Workspace& workspace) {
  const int64_t all = steps_ * streams_, width = gate_count_ * hidden_;
  gates_ = kept(workspace, gates_part_, Shape{all, width});
  previous_ = kept(workspace, previous_part_, Shape{all, hidden_});
  dgates_ = scratch_of(workspace, dgates_part_, Shape{all, width});
  dh_ = scratch_of(workspace, dh_part_, Shape{streams_, hidden_});
  static_gates_ = scratch_of(workspace, static_part_, Shape{streams_, width});
  state_ = f32_of(parts_.part(workspace, state_part_).state,
                  {.shape = Shape{state_count_, streams_, hidden_}});
  bind_memory(workspace);
}

Tensor RecurrentLayer::step(const Tensor& blob, int64_t t) const {
  const int64_t width = blob.count() / (steps_ * streams_);
  return {blob.f32() + t * streams_ * width, {.shape = Shape{streams_, width}}};
}

CTensor RecurrentLayer::step(const CTensor& blob, int64_t t) const {
  const int64_t width = blob.count() / (steps_ * streams_);
  return {blob.f32() + t * streams_ * width, {.shape = Shape{streams_, width}}};
}

CTensor RecurrentLayer::rows(const CTensor& blob, int64_t rows) const {
  return reshaped(blob, Shape{rows, blob.count() / rows});
}

Grad RecurrentLayer::rows(const Grad& gradient, int64_t rows) const {
  return reshaped(gradient, Shape{rows, gradient.t.count() / rows});
}

void RecurrentLayer::project_inputs(Ops& ops, CTensors bottom) const {
  const int64_t width = gate_count_ * hidden_;
  if (has_static_) {
    ops.gemm(false, true, 1, rows(bottom[2], streams_), weight(2), static_gates_, Write::overwrite);
  }
  run(ops,
      GateOffsets{.bias = weight(1).f32(),
                  .each_time = has_static_ ? static_gates_.f32() : nullptr,
                  .y = gates_.f32(),
                  .cols = Divider(width),
                  .period = Divider(streams_)},
      gates_.count());
  ops.gemm(false, true, 1, rows(bottom[0], steps_ * streams_), weight(0), gates_,
           Write::accumulate);
}

void RecurrentLayer::add_recurrence(Ops& ops, CTensors bottom, int64_t t, CTensor h) const {
  const Tensor previous = step(previous_, t);
  run(ops, ContinueRows{h.f32(), bottom[1].f32() + t * streams_, previous.f32(), Divider(hidden_)},
      previous.count());
  ops.gemm(false, true, 1, previous, weight(recurrent_weight()), step(gates_, t),
           Write::accumulate);
}

void RecurrentLayer::recurrence_gradient(Ops& ops, CTensors bottom, int64_t t) const {
  ops.gemm(false, false, 1, step(dgates_, t), weight(recurrent_weight()), dh_, Write::overwrite);
  run(ops, ContinueRows{dh_.f32(), bottom[1].f32() + t * streams_, dh_.f32(), Divider(hidden_)},
      dh_.count());
}

void RecurrentLayer::input_gradients(Ops& ops, const BackwardArgs& args) const {
  const int64_t all = steps_ * streams_, width = gate_count_ * hidden_;
  const CTensor x = rows(args.bottom[0], all);
  const Grad dw = param_gradient(args, 0), db = param_gradient(args, 1);
  if (dw) ops.gemm(true, false, 1, dgates_, x, dw.t, dw.how);
  if (db) {
    run_rows(ops, ColumnSums{dgates_.f32(), db.t.f32(), width, db.how == Write::accumulate}, width,
             all);
  }
  const Grad dh = param_gradient(args, static_cast<size_t>(recurrent_weight()));
  if (dh) ops.gemm(true, false, 1, dgates_, previous_, dh.t, dh.how);
  if (args.dbottom[0]) {
    const Grad dx = rows(args.dbottom[0], all);
    ops.gemm(false, false, 1, dgates_, weight(0), dx.t, dx.how);
  }
  if (has_static_) {
    run(ops,
        SumOverTime{dgates_.f32(), static_gates_.f32(), streams_ * width, static_cast<int>(steps_)},
        static_gates_.count());
    const Grad ds = param_gradient(args, 2);
    if (ds) ops.gemm(true, false, 1, static_gates_, rows(args.bottom[2], streams_), ds.t, ds.how);
    if (args.dbottom[2]) {
      const Grad dx = rows(args.dbottom[2], streams_);
      ops.gemm(false, false, 1, static_gates_, weight(2), dx.t, dx.how);
    }
  }
  for (size_t i = has_static_ ? 3 : 2; i < args.dbottom.size(); ++i)
    no_gradient(ops, args.dbottom[i]);
}

CTensor RecurrentLayer::initial_state(CTensors bottom, int i) const {
  if (exposes_) {
    return bottom[bottom.size() - static_cast<size_t>(state_count_ - i)];
  }
  return {state_.f32() + i * streams_ * hidden_, {.shape = Shape{streams_, hidden_}}};
}

void RecurrentLayer::store_state(Ops& ops, CTensor state, Tensors top, int i) const {
  const TensorDesc desc{.shape = Shape{streams_, hidden_}};
  float* place =
      exposes_ ? top[static_cast<size_t>(1 + i)].f32() : state_.f32() + i * streams_ * hidden_;
  ops.convert({state.data, desc}, {place, desc});
}

}  // namespace crema
