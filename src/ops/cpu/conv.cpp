// Convolution through oneDNN. Activations stay in the layout they have; weights are packed in the
// library's own order once per update, and their gradients brought back into plain order.
#include <optional>

#include "base/error.h"
#include "ops/cpu/conv_data.h"
#include "ops/cpu/conv_depthwise.h"
#include "ops/cpu/conv_direct.h"
#include "ops/cpu/conv_nchw.h"
#include "ops/cpu/conv_outer.h"
#include "ops/cpu/conv_params.h"
#include "ops/cpu/conv_problem.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/depthwise.h"
#include "ops/cpu/dnnl_weights.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/winograd.h"

namespace crema {
namespace {

using dnnl_conv::BackwardData, dnnl_conv::BackwardWeights, dnnl_conv::Desc, dnnl_conv::Forward,
    dnnl_conv::Problem;

class DnnlConvPlan : public ConvPlan {
 public:
  DnnlConvPlan(CpuOps& ops, const ConvDesc& desc)
      : ops_(ops),
        isa_(ops.isa()),
        gemm_(ops.matrix_product()),
        desc_(desc),
        is_low_(is_low(desc.x.dtype)) {
    const Problem p(desc);
    const DnnlContext& context = ops.dnnl();
    const auto forward = plan_forward(context, p);
    plan_winograd();
    if (desc.train && desc.need_dx) plan_backward_data(context, p, forward);
    if (desc.train) plan_backward_weights(context, p, forward);
  }

  Needs needs() const override {
    const size_t backward = fewer_data_ ? fewer_data_->packed_bytes()
                            : data_     ? data_->packed_bytes()
                                        : backward_weights_.bytes();
    return {.scratch = scratch_bytes_,
            .packed = forward_bytes() + (backward_shares_ ? 0 : backward + 64)};
  }

  void bind(const Workspace& workspace) override {
    scratch_ = workspace.scratch;
    for (DnnlCall* call : {&forward_, &backward_data_, &backward_weights_call_}) {
      if (*call && call->takes(DNNL_ARG_SCRATCHPAD)) {
        call->set(DNNL_ARG_SCRATCHPAD, scratch_.data);
      }
    }
    window_weights_ = part(workspace.packed, 0);
    forward_weights_.bind(window_weights_);
    if (backward_shares_) return;
    data_weights_ = part(workspace.packed, (forward_bytes() + 63) / 64 * 64);
    backward_weights_.bind(data_weights_);
  }

  void weights_changed(CTensor w) override {
    if (fewer_forward_) {
      fewer_forward_->pack(w.f32(), window_weights_);
    } else {
      forward_weights_.pack(w.f32());
    }
    if (fewer_data_) return fewer_data_->pack(w.f32(), data_weights_);
    if (data_) return data_->pack(w.f32(), data_weights_);
    if (backward_data_ && !backward_shares_) backward_weights_.pack(w.f32());
  }

  void forward(CTensor x, CTensor w, CTensor b, CTensor residual, Tensor y) override {
    if (fewer_forward_) {
      const Winograd::Additions additions{.bias = desc_.bias ? b.f32() : nullptr,
                                          .residual = desc_.residual ? residual.f32() : nullptr,
                                          .act = desc_.act};
      return fewer_forward_->run(x.f32(), window_weights_, additions, false, y.f32(),
                                 part(scratch_, 0));
    }
    forward_.set(DNNL_ARG_SRC, x.data);
    forward_.set(DNNL_ARG_WEIGHTS, forward_weights_.pick(w.f32()));
    if (desc_.bias) forward_.set(DNNL_ARG_BIAS, b.data);
    if (is_fused_ && desc_.residual) forward_.set(kResidualArgument, residual.data);
    forward_.set(DNNL_ARG_DST, y.data);
    forward_.run();
    if (is_fused_) return;
    if (desc_.residual) ops_.add(residual, y);
    if (desc_.act.kind != ActKind::none) {
      ops_.unary(unary_of(desc_.act), unary_args_of(desc_.act), y, y);
    }
  }

  void backward_data(CTensor dy, CTensor w, Grad dx) override {
    if (!dx) return;
    if (fewer_data_) {
      const bool adds = dx.how == Write::accumulate;
      return fewer_data_->run(dy.f32(), data_weights_, {}, adds, dx.t.f32(), part(scratch_, 0));
    }
    if (data_) return data_->run(dy.f32(), data_weights_, dx, part(scratch_, 0));
    const PackedWeights& weights = backward_shares_ ? forward_weights_ : backward_weights_;
    const bool adds = dx.how == Write::accumulate;
    const Tensor target{adds ? part(scratch_, dx_at_) : dx.t.data, dx.t.desc};
    backward_data_.set(DNNL_ARG_DIFF_DST, dy.data);
    backward_data_.set(DNNL_ARG_WEIGHTS, weights.pick(w.f32()));
    backward_data_.set(DNNL_ARG_DIFF_SRC, target.data);
    backward_data_.run();
    if (adds) ops_.add(target, dx.t);
  }

  void backward_params(CTensor x, CTensor dy, Grad dw, Grad db) override {
    if (!dw && !db) return;
    if (fewer_params_) {
      return fewer_params_->run(x.f32(), dy.f32(), dw, db, part(scratch_, 0));
    }
    if (outer_) return outer_->run(x.f32(), dy.f32(), dw, db, part(scratch_, 0));
    if (depthwise_) return depthwise_->run(x.f32(), dy.f32(), dw, db, part(scratch_, 0));
    if (params_) return params_->run(x.f32(), dy.f32(), dw, db, part(scratch_, 0));
    const bool is_direct = unpack_.is_direct(dw);
    const bool bias_direct = db && db.how == Write::overwrite;
    float* dw_target = is_direct ? dw.t.f32() : part(scratch_, dw_at_);
    float* db_target = bias_direct ? db.t.f32() : part(scratch_, db_at_);
    backward_weights_call_.set(DNNL_ARG_SRC, x.data);
    backward_weights_call_.set(DNNL_ARG_DIFF_DST, dy.data);
    backward_weights_call_.set(DNNL_ARG_DIFF_WEIGHTS, dw_target);
    if (desc_.bias) backward_weights_call_.set(DNNL_ARG_DIFF_BIAS, db_target);
    backward_weights_call_.run();
    if (dw && !is_direct) unpack_.bring_home(isa_, dw_target, dw);
    if (db && !bias_direct) add_loop(isa_, db_target, db.t.f32(), db.t.count());
  }

 private:
  static constexpr int kResidualArgument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1;

  Forward::primitive_desc plan_forward(const DnnlContext& context, const Problem& p) {
    const bool wants_fusion = desc_.residual || desc_.act.kind != ActKind::none;
    Forward::primitive_desc d = dnnl_conv::forward_desc(context, p, desc_, false);
    is_fused_ = !wants_fusion;
    if (wants_fusion) {
      try {
        const auto fused = dnnl_conv::forward_desc(context, p, desc_, true);
        if (!is_reference(fused.impl_info_str())) {
          d = fused;
          is_fused_ = true;
        }
      } catch (const dnnl::error&) {
        is_fused_ = false;  // the library cannot: the sum and the activation follow in loops
      }
    }
    forward_ = DnnlCall(context, Forward(d));
    forward_.declare(DNNL_ARG_SRC, p.x);
    forward_.declare(DNNL_ARG_WEIGHTS, d.weights_desc());
    if (desc_.bias) forward_.declare(DNNL_ARG_BIAS, p.bias);
    if (is_fused_ && desc_.residual) forward_.declare(kResidualArgument, p.y);
    forward_.declare(DNNL_ARG_DST, p.y);
    forward_.declare(DNNL_ARG_SCRATCHPAD, d.scratchpad_desc());
    forward_weights_ = PackedWeights(context, p.w_plain, d.weights_desc());
    forward_format_ = d.weights_desc();
    want_scratch(d.scratchpad_desc().get_size());
    return d;
  }

  size_t forward_bytes() const {
    return fewer_forward_ ? fewer_forward_->packed_bytes() : forward_weights_.bytes();
  }

  void plan_winograd() {
    if (is_low_) return;
    if (winograd_suits(desc_, ConvDirection::forward)) {
      fewer_forward_ = std::make_unique<Winograd>(isa_, gemm_, desc_, ConvDirection::forward);
      want_scratch(fewer_forward_->scratch_bytes());
    }
    if (desc_.train && desc_.need_dx && winograd_suits(desc_, ConvDirection::data)) {
      fewer_data_ = std::make_unique<Winograd>(isa_, gemm_, desc_, ConvDirection::data);
      want_scratch(fewer_data_->scratch_bytes());
    }
  }

  void plan_backward_data(const DnnlContext& context, const Problem& p,
                          const Forward::primitive_desc& hint) {
    if (fewer_data_) {
      backward_shares_ = false;
      return;
    }
    if (!is_low_ && ConvData::suits(desc_)) {
      data_ = std::make_unique<ConvData>(isa_, gemm_, desc_);
      backward_shares_ = false;
      want_scratch(data_->scratch_bytes());
      return;
    }
    const auto d = dnnl_conv::backward_data_desc(context, p, hint);
    backward_data_ = DnnlCall(context, BackwardData(d));
    backward_data_.declare(DNNL_ARG_DIFF_DST, p.y);
    backward_data_.declare(DNNL_ARG_WEIGHTS, d.weights_desc());
    backward_data_.declare(DNNL_ARG_DIFF_SRC, p.x);
    backward_data_.declare(DNNL_ARG_SCRATCHPAD, d.scratchpad_desc());
    backward_shares_ = !fewer_forward_ && d.weights_desc() == forward_format_;
    if (!backward_shares_) backward_weights_ = PackedWeights(context, p.w_plain, d.weights_desc());
    Parts parts;
    parts.add(d.scratchpad_desc().get_size());
    dx_at_ = parts.add(p.x.get_size());
    want_scratch(parts.total());
  }

  /// Our own loops for the weight gradient; false: the library has to do it.
  bool plan_own_weights() {
    if (is_low_) return false;
    if (winograd_suits(desc_, ConvDirection::params)) {
      fewer_params_ = std::make_unique<WinogradParams>(isa_, gemm_, desc_);
      want_scratch(fewer_params_->scratch_bytes());
      return true;
    }
    if (ConvOuter::suits(isa_, desc_)) {
      outer_ = std::make_unique<ConvOuter>(isa_, gemm_, desc_);
      want_scratch(outer_->scratch_bytes());
      return true;
    }
    if (ConvParams::suits(desc_)) {
      params_ = std::make_unique<ConvParams>(isa_, gemm_, desc_);
      want_scratch(params_->scratch_bytes());
      return true;
    }
    if (ConvDepthwise::suits(isa_, desc_)) {
      depthwise_ = std::make_unique<ConvDepthwise>(isa_, desc_);
      want_scratch(depthwise_->scratch_bytes());
      return true;
    }
    return false;
  }

  void plan_backward_weights(const DnnlContext& context, const Problem& p,
                             const Forward::primitive_desc& hint) {
    if (plan_own_weights()) return;
    const auto d = dnnl_conv::backward_weights_desc(context, p, desc_.bias, hint);
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
  const Isa& isa_;
  const Gemm& gemm_;
  ConvDesc desc_;
  // In place of the library's, or null.
  std::unique_ptr<Winograd> fewer_forward_, fewer_data_;
  std::unique_ptr<WinogradParams> fewer_params_;
  std::unique_ptr<ConvData> data_;
  std::unique_ptr<ConvOuter> outer_;
  std::unique_ptr<ConvParams> params_;
  std::unique_ptr<ConvDepthwise> depthwise_;
  DnnlCall forward_, backward_data_, backward_weights_call_;
  UnpackedGradient unpack_;
  PackedWeights forward_weights_, backward_weights_;
  Desc forward_format_;
  Tensor scratch_;
  size_t scratch_bytes_ = 0, dx_at_ = 0, dw_at_ = 0, db_at_ = 0;
  float *window_weights_ = nullptr, *data_weights_ = nullptr;
  bool is_low_ = false;  // 16-bit blobs: our own loops are for f32
  bool is_fused_ = true, backward_shares_ = true;
};

/// Whether no direction that is wanted falls to the library's reference code.
bool is_all_fast(const DnnlContext& context, const ConvDesc& desc) {
  const Problem p(desc);
  const auto forward = dnnl_conv::forward_desc(context, p, desc, false);
  if (is_reference(forward.impl_info_str())) return false;
  if (!desc.train) return true;
  const auto params = dnnl_conv::backward_weights_desc(context, p, desc.bias, forward);
  if (is_reference(params.impl_info_str())) return false;
  return !desc.need_dx ||
         !is_reference(dnnl_conv::backward_data_desc(context, p, forward).impl_info_str());
}

}  // namespace

std::optional<std::string> CpuOps::why_not(const ConvDesc& desc) const {
  if (desc.w.dtype != DType::f32) return "a convolution's weights are given as 32-bit floats";
  if (desc.x.dtype != desc.y.dtype) return "a convolution's x and y have one number type";
  if (desc.x.dtype == DType::f32) return std::nullopt;
  if (const auto reason = why_not_precision(desc.x.dtype)) return reason;
  const char* const has_none = "oneDNN has no fast convolution of this shape in bf16";
  if (desc.pad.axes > 3) return has_none;
  ConvDesc nhwc = desc;
  nhwc.x.layout = nhwc.y.layout = Layout::nhwc;
  try {
    return is_all_fast(dnnl_, nhwc) ? std::nullopt : std::optional<std::string>(has_none);
  } catch (const dnnl::error&) {
    return has_none;
  }
}

Layout CpuOps::preferred(const ConvDesc& desc) const {
  if (desc.pad.axes > 3) return Layout::nchw;
  ConvDesc nhwc = desc;
  nhwc.x.layout = nhwc.y.layout = Layout::nhwc;
  try {
    const Problem p(nhwc);
    return is_reference(dnnl_conv::forward_desc(dnnl_, p, nhwc, false).impl_info_str())
               ? Layout::nchw
               : Layout::nhwc;
  } catch (const dnnl::error&) {
    return Layout::nchw;
  }
}

std::unique_ptr<ConvPlan> CpuOps::plan(const ConvDesc& desc) {
  if (const auto reason = why_not(desc)) fail(*reason);
  if (desc.pad.axes > 3) return make_direct_conv(isa_, desc);
  ConvDesc nhwc = desc;
  nhwc.x.layout = nhwc.y.layout = Layout::nhwc;
  try {
    std::unique_ptr<ConvPlan> plan;
    if (depthwise_suits(isa_, nhwc)) {
      plan = make_depthwise_conv(isa_, nhwc);
    } else {
      plan = std::make_unique<DnnlConvPlan>(*this, nhwc);
    }
    if (nhwc == desc) return plan;
    return make_nchw_conv(*this, desc, std::move(plan));
  } catch (const dnnl::error&) {
    return make_direct_conv(isa_, desc);
  }
}

}  // namespace crema
