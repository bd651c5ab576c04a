// Convolution through oneDNN. Activations stay in the layout they have; weights are packed in the
// library's own order once per update, and their gradients brought back into plain order.
#include <optional>

#include "base/error.h"
#include "ops/cpu/conv_data.h"
#include "ops/cpu/conv_depthwise.h"
#include "ops/cpu/conv_direct.h"
#include "ops/cpu/conv_nchw.h"
#include "ops/cpu/conv_params.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/parallel.h"

namespace crema {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

/// A ConvDesc in the library's terms.
struct Problem {
  explicit Problem(const ConvDesc& desc)
      : x_dims(picture_dims(desc.x.shape)),
        y_dims(picture_dims(desc.y.shape)),
        w_dims(picture_dims(desc.w.shape)),
        x(f32_desc(x_dims, desc.x.layout)),
        y(f32_desc(y_dims, desc.y.layout)),
        bias({y_dims[1]}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::x) {
    if (desc.pad.axes == 1) {
      stride.push_back(1);
      dilation.push_back(0);
      pad.push_back(0);
    }
    for (int i = 0; i < desc.pad.axes; ++i) {
      stride.push_back(desc.stride[i]);
      dilation.push_back(desc.dilation[i] - 1);
      pad.push_back(desc.pad[i]);
    }
    for (size_t i = 0; i < pad.size(); ++i) {
      // The end may need less than pad, or less than nothing, where the stride leaves a rest.
      const int64_t extent = (w_dims[i + 2] - 1) * (dilation[i] + 1) + 1;
      pad_end.push_back((y_dims[i + 2] - 1) * stride[i] + extent - x_dims[i + 2] - pad[i]);
    }
    if (desc.groups > 1) {
      Dims grouped{desc.groups};
      grouped.insert(grouped.end(), w_dims.begin(), w_dims.end());
      grouped[1] /= desc.groups;
      w_dims = grouped;
    }
    w_plain = f32_desc(w_dims, Layout::nchw);
    w_any = any_desc(w_dims);
  }
  Dims x_dims, y_dims, w_dims, stride, dilation, pad, pad_end;
  Desc x, y, bias, w_plain, w_any;
};

void append_act(dnnl::post_ops& ops, const Act& act) {
  switch (act.kind) {
    case ActKind::none:
      return;
    case ActKind::relu:
      return ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, act.slope, 0.0f);
    case ActKind::relu6:
      return ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_clip, 0.0f, 6.0f);
    case ActKind::elu:
      return ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_elu, act.slope, 0.0f);
  }
}

Forward::primitive_desc forward_desc(const DnnlContext& context, const Problem& p,
                                     const ConvDesc& desc, bool is_fused) {
  dnnl::primitive_attr attr = user_scratchpad();
  if (is_fused) {
    dnnl::post_ops ops;
    if (desc.residual) ops.append_binary(dnnl::algorithm::binary_add, p.y);
    append_act(ops, desc.act);
    attr.set_post_ops(ops);
  }
  const auto kind =
      desc.train ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const auto d = desc.bias ? Forward::desc(kind, kDirect, p.x, p.w_any, p.bias, p.y, p.stride,
                                           p.dilation, p.pad, p.pad_end)
                           : Forward::desc(kind, kDirect, p.x, p.w_any, p.y, p.stride, p.dilation,
                                           p.pad, p.pad_end);
  return {d, attr, context.engine};
}

BackwardData::primitive_desc backward_data_desc(const DnnlContext& context, const Problem& p,
                                                const Forward::primitive_desc& hint) {
  return {BackwardData::desc(kDirect, p.x, p.w_any, p.y, p.stride, p.dilation, p.pad, p.pad_end),
          user_scratchpad(), context.engine, hint};
}

BackwardWeights::primitive_desc backward_weights_desc(const DnnlContext& context, const Problem& p,
                                                      bool has_bias,
                                                      const Forward::primitive_desc& hint) {
  const auto d = has_bias ? BackwardWeights::desc(kDirect, p.x, p.w_any, p.bias, p.y, p.stride,
                                                  p.dilation, p.pad, p.pad_end)
                          : BackwardWeights::desc(kDirect, p.x, p.w_any, p.y, p.stride, p.dilation,
                                                  p.pad, p.pad_end);
  return {d, user_scratchpad(), context.engine, hint};
}

/// Weights in one direction's own order: packed once per update, or read in place.
class PackedWeights {
 public:
  PackedWeights() = default;
  PackedWeights(const DnnlContext& context, const Problem& p, const Desc& packed) {
    if (packed == p.w_plain) return;
    pack_ = make_reorder(context, p.w_plain, packed, false);
    bytes_ = packed.get_size();
  }
  size_t bytes() const { return bytes_; }
  void bind(float* memory) {
    memory_ = memory;
    if (pack_) pack_.set(DNNL_ARG_TO, memory);
  }
  void pack(const float* w) {
    if (!pack_) return;
    pack_.set(DNNL_ARG_FROM, w);
    pack_.run();
  }
  const float* pick(const float* w) const { return pack_ ? memory_ : w; }

 private:
  DnnlCall pack_;
  size_t bytes_ = 0;
  float* memory_ = nullptr;
};

class DnnlConvPlan : public ConvPlan {
 public:
  DnnlConvPlan(CpuOps& ops, const ConvDesc& desc)
      : isa_(ops.isa()), gemm_(ops.matrix_product()), desc_(desc) {
    const Problem p(desc);
    const DnnlContext& context = ops.dnnl();
    const auto forward = plan_forward(context, p);
    is_wide_ = std::string_view(forward.impl_info_str()).find("avx512") != std::string_view::npos;
    if (desc.train && desc.need_dx) plan_backward_data(context, p, forward);
    if (desc.train) plan_backward_weights(context, p, forward);
  }

  Needs needs() const override {
    const size_t backward = data_ ? data_->packed_bytes() : backward_weights_.bytes();
    return {.scratch = scratch_bytes_,
            .packed = forward_weights_.bytes() + (backward_shares_ ? 0 : backward + 64)};
  }

  void bind(const Workspace& workspace) override {
    scratch_ = workspace.scratch;
    for (DnnlCall* call : {&forward_, &backward_data_, &backward_weights_call_}) {
      if (*call && call->takes(DNNL_ARG_SCRATCHPAD)) {
        call->set(DNNL_ARG_SCRATCHPAD, scratch_.data);
      }
    }
    forward_weights_.bind(part(workspace.packed, 0));
    if (backward_shares_) return;
    data_weights_ = part(workspace.packed, (forward_weights_.bytes() + 63) / 64 * 64);
    backward_weights_.bind(data_weights_);
  }

  void weights_changed(CTensor w) override {
    forward_weights_.pack(w.f32());
    if (data_) return data_->pack(w.f32(), data_weights_);
    if (backward_data_ && !backward_shares_) backward_weights_.pack(w.f32());
  }

  void forward(CTensor x, CTensor w, CTensor b, CTensor residual, Tensor y) override {
    forward_.set(DNNL_ARG_SRC, x.data);
    forward_.set(DNNL_ARG_WEIGHTS, forward_weights_.pick(w.f32()));
    if (desc_.bias) forward_.set(DNNL_ARG_BIAS, b.data);
    if (is_fused_ && desc_.residual) forward_.set(kResidualArgument, residual.data);
    forward_.set(DNNL_ARG_DST, y.data);
    forward_.run();
    if (is_fused_) return;
    if (desc_.residual) add_loop(isa_, residual.f32(), y.f32(), y.count());
    if (desc_.act.kind != ActKind::none) {
      unary_loop(isa_, unary_of(desc_.act), unary_args_of(desc_.act), y.f32(), y.f32(), y.count());
    }
  }

  void backward_data(CTensor dy, CTensor w, Grad dx) override {
    if (!dx) return;
    if (data_) return data_->run(dy.f32(), data_weights_, dx, part(scratch_, 0));
    const PackedWeights& weights = backward_shares_ ? forward_weights_ : backward_weights_;
    const bool adds = dx.how == Write::accumulate;
    float* target = adds ? part(scratch_, dx_at_) : dx.t.f32();
    backward_data_.set(DNNL_ARG_DIFF_DST, dy.data);
    backward_data_.set(DNNL_ARG_WEIGHTS, weights.pick(w.f32()));
    backward_data_.set(DNNL_ARG_DIFF_SRC, target);
    backward_data_.run();
    if (adds) add_loop(isa_, target, dx.t.f32(), dx.t.count());
  }

  void backward_params(CTensor x, CTensor dy, Grad dw, Grad db) override {
    if (!dw && !db) return;
    if (depthwise_) return depthwise_->run(x.f32(), dy.f32(), dw, db, part(scratch_, 0));
    if (params_) return params_->run(x.f32(), dy.f32(), dw, db, part(scratch_, 0));
    const bool is_direct = !unpack_ && dw && dw.how == Write::overwrite;
    const bool bias_direct = db && db.how == Write::overwrite;
    float* dw_target = is_direct ? dw.t.f32() : part(scratch_, dw_at_);
    float* db_target = bias_direct ? db.t.f32() : part(scratch_, db_at_);
    backward_weights_call_.set(DNNL_ARG_SRC, x.data);
    backward_weights_call_.set(DNNL_ARG_DIFF_DST, dy.data);
    backward_weights_call_.set(DNNL_ARG_DIFF_WEIGHTS, dw_target);
    if (desc_.bias) backward_weights_call_.set(DNNL_ARG_DIFF_BIAS, db_target);
    backward_weights_call_.run();
    if (dw && !is_direct) bring_home(dw_target, dw);
    if (db && !bias_direct) add_loop(isa_, db_target, db.t.f32(), db.t.count());
  }

 private:
  static constexpr int kResidualArgument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1;

  Forward::primitive_desc plan_forward(const DnnlContext& context, const Problem& p) {
    const bool wants_fusion = desc_.residual || desc_.act.kind != ActKind::none;
    Forward::primitive_desc d = forward_desc(context, p, desc_, false);
    is_fused_ = !wants_fusion;
    if (wants_fusion) {
      try {
        const auto fused = forward_desc(context, p, desc_, true);
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
    forward_weights_ = PackedWeights(context, p, d.weights_desc());
    forward_format_ = d.weights_desc();
    want_scratch(d.scratchpad_desc().get_size());
    return d;
  }

  void plan_backward_data(const DnnlContext& context, const Problem& p,
                          const Forward::primitive_desc& hint) {
    if (!is_wide_ && ConvData::suits(desc_)) {
      data_ = std::make_unique<ConvData>(isa_, gemm_, desc_);
      backward_shares_ = false;
      want_scratch(data_->scratch_bytes());
      return;
    }
    const auto d = backward_data_desc(context, p, hint);
    backward_data_ = DnnlCall(context, BackwardData(d));
    backward_data_.declare(DNNL_ARG_DIFF_DST, p.y);
    backward_data_.declare(DNNL_ARG_WEIGHTS, d.weights_desc());
    backward_data_.declare(DNNL_ARG_DIFF_SRC, p.x);
    backward_data_.declare(DNNL_ARG_SCRATCHPAD, d.scratchpad_desc());
    backward_shares_ = d.weights_desc() == forward_format_;
    if (!backward_shares_) backward_weights_ = PackedWeights(context, p, d.weights_desc());
    Parts parts;
    parts.add(d.scratchpad_desc().get_size());
    dx_at_ = parts.add(p.x.get_size());
    want_scratch(parts.total());
  }

  void plan_backward_weights(const DnnlContext& context, const Problem& p,
                             const Forward::primitive_desc& hint) {
    if (!is_wide_ && ConvParams::suits(desc_)) {
      params_ = std::make_unique<ConvParams>(isa_, gemm_, desc_);
      want_scratch(params_->scratch_bytes());
      return;
    }
    if (!is_wide_ && ConvDepthwise::suits(isa_, desc_)) {
      depthwise_ = std::make_unique<ConvDepthwise>(isa_, desc_);
      want_scratch(depthwise_->scratch_bytes());
      return;
    }
    const auto d = backward_weights_desc(context, p, desc_.bias, hint);
    backward_weights_call_ = DnnlCall(context, BackwardWeights(d));
    backward_weights_call_.declare(DNNL_ARG_SRC, p.x);
    backward_weights_call_.declare(DNNL_ARG_DIFF_DST, p.y);
    backward_weights_call_.declare(DNNL_ARG_DIFF_WEIGHTS, d.diff_weights_desc());
    if (desc_.bias) backward_weights_call_.declare(DNNL_ARG_DIFF_BIAS, p.bias);
    backward_weights_call_.declare(DNNL_ARG_SCRATCHPAD, d.scratchpad_desc());
    size_t reorder_scratch = 0;
    if (d.diff_weights_desc() != p.w_plain) {
      unpack_ = make_reorder(context, d.diff_weights_desc(), p.w_plain, false);
      unpack_adding_ = make_reorder(context, d.diff_weights_desc(), p.w_plain, true);
    }
    Parts parts;
    parts.add(std::max(d.scratchpad_desc().get_size(), reorder_scratch));
    dw_at_ = parts.add(d.diff_weights_desc().get_size());
    db_at_ = parts.add(p.bias.get_size());
    want_scratch(parts.total());
  }

  void bring_home(float* from, const Grad& dw) {
    if (!unpack_) return add_loop(isa_, from, dw.t.f32(), dw.t.count());
    DnnlCall& call = dw.how == Write::accumulate ? unpack_adding_ : unpack_;
    call.set(DNNL_ARG_FROM, from);
    call.set(DNNL_ARG_TO, dw.t.data);
    call.run();
  }

  void want_scratch(size_t bytes) { scratch_bytes_ = std::max(scratch_bytes_, bytes); }

  const Isa& isa_;
  const Gemm& gemm_;
  ConvDesc desc_;
  // In place of the library's, or null.
  std::unique_ptr<ConvData> data_;
  std::unique_ptr<ConvParams> params_;
  std::unique_ptr<ConvDepthwise> depthwise_;
  DnnlCall forward_, backward_data_, backward_weights_call_, unpack_, unpack_adding_;
  PackedWeights forward_weights_, backward_weights_;
  Desc forward_format_;
  Tensor scratch_;
  size_t scratch_bytes_ = 0, dx_at_ = 0, dw_at_ = 0, db_at_ = 0;
  float* data_weights_ = nullptr;
  bool is_wide_ = false;  // the library computes with AVX-512
  bool is_fused_ = true, backward_shares_ = true;
};

}  // namespace

std::optional<std::string> CpuOps::why_not(const ConvDesc& desc) const {
  for (const TensorDesc* t : {&desc.x, &desc.w, &desc.y}) {
    if (t->dtype != DType::f32) return "the CPU computes convolutions in 32-bit floats only";
  }
  return std::nullopt;
}

Layout CpuOps::preferred(const ConvDesc& desc) const {
  if (desc.pad.axes > 3) return Layout::nchw;
  ConvDesc nhwc = desc;
  nhwc.x.layout = nhwc.y.layout = Layout::nhwc;
  try {
    const Problem p(nhwc);
    return is_reference(forward_desc(dnnl_, p, nhwc, false).impl_info_str()) ? Layout::nchw
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
    auto plan = std::make_unique<DnnlConvPlan>(*this, nhwc);
    if (nhwc == desc) return plan;
    return make_nchw_conv(*this, desc, std::move(plan));
  } catch (const dnnl::error&) {
    return make_direct_conv(isa_, desc);
  }
}

}  // namespace crema
