// Inner product in bf16 through oneDNN: weights are packed in the library's own order and type once
// per update; their gradients are f32 and are brought back into plain order.
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/dnnl_weights.h"

namespace crema {
namespace {

using Desc = dnnl::memory::desc;
using Forward = dnnl::inner_product_forward;
using BackwardData = dnnl::inner_product_backward_data;
using BackwardWeights = dnnl::inner_product_backward_weights;

/// A LinearDesc in the library's terms.
struct Problem {
  explicit Problem(const LinearDesc& d)
      : x(plain_desc({d.m, d.k}, Layout::nchw, data_type_of(d.dtype))),
        y(plain_desc({d.m, d.n}, Layout::nchw, data_type_of(d.dtype))),
        w(any_desc({d.n, d.k}, data_type_of(d.dtype))),
        dw(any_desc({d.n, d.k})),
        bias(plain_desc({d.n}, Layout::nchw)),
        w_plain({d.n, d.k}, kF32,
                d.transposed ? dnnl::memory::dims{1, d.n} : dnnl::memory::dims{d.k, 1}) {}
  Desc x, y, w, dw, bias, w_plain;
};

class LowLinearPlan : public LinearPlan {
 public:
  LowLinearPlan(CpuOps& ops, const LinearDesc& desc) : ops_(ops), desc_(desc) {
    const Problem p(desc);
    const Forward::primitive_desc forward = plan_forward(p);
    if (desc.train && desc.need_dx) plan_backward_data(p, forward);
    if (desc.train) plan_backward_weights(p, forward);
  }

  Needs needs() const override { return {.scratch = scratch_bytes_, .packed = packed_bytes_}; }

  void bind(const Workspace& workspace) override {
    scratch_ = workspace.scratch;
    for (DnnlCall* call : {&forward_, &backward_data_, &backward_weights_call_}) {
      if (*call && call->takes(DNNL_ARG_SCRATCHPAD)) {
        call->set(DNNL_ARG_SCRATCHPAD, scratch_.data);
      }
    }
    forward_weights_.bind(part(workspace.packed, 0));
    backward_weights_.bind(part(workspace.packed, backward_weights_at_));
  }

  void weights_changed(CTensor w) override {
    forward_weights_.pack(w.f32());
    if (!shares_weights_) backward_weights_.pack(w.f32());
  }

  void forward(CTensor x, CTensor w, CTensor b, Tensor y) override {
    forward_.set(DNNL_ARG_SRC, x.data);
    forward_.set(DNNL_ARG_WEIGHTS, forward_weights_.pick(w.f32()));
    if (desc_.bias) forward_.set(DNNL_ARG_BIAS, b.data);
    forward_.set(DNNL_ARG_DST, y.data);
    forward_.run();
  }

  void backward_data(CTensor dy, CTensor w, Grad dx) override {
    if (!dx) return;
    const bool adds = dx.how == Write::accumulate;
    const Tensor target{adds ? part(scratch_, dx_at_) : dx.t.data, dx.t.desc};
    backward_data_.set(DNNL_ARG_DIFF_DST, dy.data);
    const PackedWeights& weights = shares_weights_ ? forward_weights_ : backward_weights_;
    backward_data_.set(DNNL_ARG_WEIGHTS, weights.pick(w.f32()));
    backward_data_.set(DNNL_ARG_DIFF_SRC, target.data);
    backward_data_.run();
    if (adds) ops_.add(target, dx.t);
  }

  void backward_params(CTensor x, CTensor dy, Grad dw, Grad db) override {
    if (!dw && !db) return;
    const bool is_direct = unpack_.is_direct(dw);
    const bool bias_direct = db && db.how == Write::overwrite;
    float* const dw_target = is_direct ? dw.t.f32() : part(scratch_, dw_at_);
    float* const db_target = bias_direct ? db.t.f32() : part(scratch_, db_at_);
    backward_weights_call_.set(DNNL_ARG_SRC, x.data);
    backward_weights_call_.set(DNNL_ARG_DIFF_DST, dy.data);
    backward_weights_call_.set(DNNL_ARG_DIFF_WEIGHTS, dw_target);
    if (desc_.bias) backward_weights_call_.set(DNNL_ARG_DIFF_BIAS, db_target);
    backward_weights_call_.run();
    if (dw && !is_direct) unpack_.bring_home(ops_.isa(), dw_target, dw);
    if (db && !bias_direct) add_loop(ops_.isa(), db_target, db.t.f32(), db.t.count());
  }

 private:
  Forward::primitive_desc plan_forward(const Problem& p) {
    const DnnlContext& context = ops_.dnnl();
    dnnl::primitive_attr attr = user_scratchpad();
    dnnl::post_ops post;
    append_act(post, desc_.act);
    attr.set_post_ops(post);
    const auto kind =
        desc_.train ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const Forward::primitive_desc d(desc_.bias ? Forward::desc(kind, p.x, p.w, p.bias, p.y)
                                               : Forward::desc(kind, p.x, p.w, p.y),
                                    attr, context.engine);
    forward_ = DnnlCall(context, Forward(d));
    forward_.declare(DNNL_ARG_SRC, p.x);
    forward_.declare(DNNL_ARG_WEIGHTS, d.weights_desc());
    if (desc_.bias) forward_.declare(DNNL_ARG_BIAS, p.bias);
    forward_.declare(DNNL_ARG_DST, p.y);
    forward_.declare(DNNL_ARG_SCRATCHPAD, d.scratchpad_desc());
    forward_weights_ = PackedWeights(context, p.w_plain, d.weights_desc());
    packed_bytes_ = forward_weights_.bytes();
    want_scratch(d.scratchpad_desc().get_size());
    return d;
  }

  void plan_backward_data(const Problem& p, const Forward::primitive_desc& hint) {
    const DnnlContext& context = ops_.dnnl();
    const BackwardData::primitive_desc d(BackwardData::desc(p.x, p.w, p.y), user_scratchpad(),
                                         context.engine, hint);
    backward_data_ = DnnlCall(context, BackwardData(d));
    backward_data_.declare(DNNL_ARG_DIFF_DST, p.y);
    backward_data_.declare(DNNL_ARG_WEIGHTS, d.weights_desc());
    backward_data_.declare(DNNL_ARG_DIFF_SRC, p.x);
    backward_data_.declare(DNNL_ARG_SCRATCHPAD, d.scratchpad_desc());
    shares_weights_ = d.weights_desc() == hint.weights_desc();
    if (!shares_weights_) {
      backward_weights_ = PackedWeights(context, p.w_plain, d.weights_desc());
      Parts parts;
      parts.add(packed_bytes_);
      backward_weights_at_ = parts.add(backward_weights_.bytes());
      packed_bytes_ = parts.total();
    }
    Parts parts;
    parts.add(d.scratchpad_desc().get_size());
    dx_at_ = parts.add(p.x.get_size());
    want_scratch(parts.total());
  }

  void plan_backward_weights(const Problem& p, const Forward::primitive_desc& hint) {
    const DnnlContext& context = ops_.dnnl();
    const BackwardWeights::primitive_desc d(desc_.bias
                                                ? BackwardWeights::desc(p.x, p.dw, p.bias, p.y)
                                                : BackwardWeights::desc(p.x, p.dw, p.y),
                                            user_scratchpad(), context.engine, hint);
    backward_weights_call_ = DnnlCall(context, BackwardWeights(d));
    backward_weights_call_.declare(DNNL_ARG_SRC, p.x);
    backward_weights_call_.declare(DNNL_ARG_DIFF_DST, p.y);
    backward_weights_call_.declare(DNNL_ARG_DIFF_WEIGHTS, d.diff_weights_desc());
    if (desc_.bias) backward_weights_call_.declare(DNNL_ARG_DIFF_BIAS, p.bias);
    backward_weights_call_.declare(DNNL_ARG_SCRATCHPAD, d.scratchpad_desc());
    unpack_ = UnpackedGradient(context, d.diff_weights_desc(), p.w_plain);
    Parts parts;
    parts.add(d.scratchpad_desc().get_size());
    dw_at_ = parts.add(d.diff_weights_desc().get_size());
    db_at_ = parts.add(p.bias.get_size());
    want_scratch(parts.total());
  }

  void want_scratch(size_t bytes) { scratch_bytes_ = std::max(scratch_bytes_, bytes); }

  CpuOps& ops_;
  LinearDesc desc_;
  DnnlCall forward_, backward_data_, backward_weights_call_;
  PackedWeights forward_weights_, backward_weights_;
  UnpackedGradient unpack_;
  Tensor scratch_;
  size_t scratch_bytes_ = 0, packed_bytes_ = 0, backward_weights_at_ = 0;
  size_t dx_at_ = 0, dw_at_ = 0, db_at_ = 0;
  bool shares_weights_ = true;
};

}  // namespace

std::unique_ptr<LinearPlan> make_low_linear(CpuOps& ops, const LinearDesc& desc) {
  return std::make_unique<LowLinearPlan>(ops, desc);
}

}  // namespace crema
