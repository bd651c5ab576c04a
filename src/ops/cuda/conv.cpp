// Convolution through cuDNN. Activations stay in the layout they have; weights are brought into
// that layout and element type once per update, and their gradients back. What cuDNN has no engine
// for goes through kernels of our own.
#include <algorithm>

#include "base/error.h"
#include "ops/cuda/channel_sums.h"
#include "ops/cuda/conv_direct.h"
#include "ops/cuda/conv_graphs.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/epilogue.h"

namespace crema::cuda {
namespace {

class CudnnConvPlan : public ConvPlan {
 public:
  CudnnConvPlan(CudaOps& ops, const ConvDesc& desc, ConvGraphs graphs)
      : ops_(ops), desc_(desc), graphs_(std::move(graphs)) {
    w_desc_ = {desc.w.shape, desc.x.dtype, desc.x.layout};
    dw_desc_ = {desc.w.shape, graphs_.dw_dtype, desc.x.layout};
    is_packed_ = !same_order(w_desc_, desc.w) || w_desc_.dtype != desc.w.dtype;
    is_unpacked_ = !same_order(dw_desc_, desc.w) || dw_desc_.dtype != desc.w.dtype;
    size_t bytes = 0;
    for (const auto& graph : {graphs_.forward, graphs_.data, graphs_.filter}) {
      if (graph) bytes = std::max(bytes, graph->workspace_bytes());
    }
    Parts parts;
    library_at_ = parts.add(bytes);
    size_t gradients = desc.train && desc.need_dx ? desc.x.bytes() : 0;
    if (desc.train) gradients = std::max(gradients, dw_desc_.bytes());
    gradient_at_ = parts.add(gradients);
    if (desc.train && desc.bias) sums_at_ = parts.add(bias_gradient_bytes(desc.y));
    scratch_bytes_ = parts.total();
  }

  Needs needs() const override {
    return {.scratch = scratch_bytes_, .packed = is_packed_ ? w_desc_.bytes() : 0};
  }

  void bind(const Workspace& workspace) override {
    scratch_ = workspace.scratch;
    packed_ = workspace.packed.data;
  }

  void weights_changed(CTensor w) override {
    if (is_packed_) convert_tensor(plain(w), {packed_, w_desc_}, Write::overwrite, ops_.stream());
  }

  void forward(CTensor x, CTensor w, CTensor b, CTensor residual, Tensor y) override {
    graphs_.forward->run(ops_.cudnn().handle(), {.x = x.data,
                                                 .w = weights(w),
                                                 .y = y.data,
                                                 .bias = b.data,
                                                 .residual = residual.data,
                                                 .workspace = library_scratch()});
    const CTensor bias = desc_.bias && !graphs_.fuses_bias ? b : CTensor();
    const CTensor other = desc_.residual && !graphs_.fuses_residual ? residual : CTensor();
    const Act act = graphs_.fuses_act ? Act() : desc_.act;
    if (!bias && !other && act.kind == ActKind::none) return;
    add_bias_and_activate({y.data, desc_.y}, bias, other, act, ops_.stream());
  }

  void backward_data(CTensor dy, CTensor w, Grad dx) override {
    if (!dx) return;
    const bool adds = dx.how == Write::accumulate;
    void* target = adds ? part<void>(gradient_at_) : dx.t.data;
    graphs_.data->run(ops_.cudnn().handle(),
                      {.x = target, .w = weights(w), .y = dy.data, .workspace = library_scratch()});
    if (adds) ops_.add({target, desc_.x}, {dx.t.data, desc_.x});
  }

  void backward_params(CTensor x, CTensor dy, Grad dw, Grad db) override {
    if (dw) {
      const bool is_direct = !is_unpacked_ && dw.how == Write::overwrite;
      void* target = is_direct ? dw.t.data : part<void>(gradient_at_);
      graphs_.filter->run(ops_.cudnn().handle(),
                          {.x = x.data, .w = target, .y = dy.data, .workspace = library_scratch()});
      if (!is_direct) {
        convert_tensor({target, dw_desc_}, {dw.t.data, desc_.w}, dw.how, ops_.stream());
      }
    }
    if (db) bias_gradient({dy.data, desc_.y}, db, part<void>(sums_at_), ops_.stream());
  }

 private:
  static bool same_order(const TensorDesc& a, const TensorDesc& b) {
    return a.layout == b.layout || a.shape[1] == 1 || a.shape.count(2) == 1;
  }
  CTensor plain(const CTensor& w) const { return {w.data, desc_.w}; }
  const void* weights(const CTensor& w) const { return is_packed_ ? packed_ : w.data; }
  template <class T>
  T* part(size_t offset) const {
    return scratch_ ? static_cast<T*>(static_cast<char*>(scratch_.data) + offset) : nullptr;
  }
  void* library_scratch() const { return part<void>(library_at_); }

  CudaOps& ops_;
  ConvDesc desc_;
  ConvGraphs graphs_;
  TensorDesc w_desc_, dw_desc_;
  Tensor scratch_;
  void* packed_ = nullptr;
  size_t library_at_ = 0, gradient_at_ = 0, sums_at_ = 0, scratch_bytes_ = 0;
  bool is_packed_ = false, is_unpacked_ = false;
};

}  // namespace

std::optional<std::string> CudaOps::why_not(const ConvDesc& desc) const {
  for (const TensorDesc* t : {&desc.x, &desc.y}) {
    if (t->dtype != DType::f32 && t->dtype != DType::f16 && t->dtype != DType::bf16) {
      return "a GPU computes convolutions in 32-bit and 16-bit floats only";
    }
  }
  if (desc.w.dtype != DType::f32) return "a convolution's weights are given as 32-bit floats";
  if (is_low(desc.x.dtype) && desc.pad.axes > 3) {
    return "cuDNN has convolutions of up to three axes, and 16-bit ones have no other";
  }
  return std::nullopt;
}

Layout CudaOps::preferred(const ConvDesc& desc) const {
  return preferred_layout(desc, device_.tf32);
}

std::unique_ptr<ConvPlan> CudaOps::plan(const ConvDesc& desc) {
  if (const auto reason = why_not(desc)) fail(*reason);
  if (desc.pad.axes <= 3 && desc.x.count() > 0 && desc.y.count() > 0) {
    if (auto graphs = plan_conv_graphs(cudnn(), desc, {.allow_tf32 = device_.tf32})) {
      return std::make_unique<CudnnConvPlan>(*this, desc, std::move(*graphs));
    }
  }
  require(desc.x.dtype == DType::f32, "cuDNN has no engine for this convolution in 16-bit floats");
  return make_direct_conv(*this, desc);
}

}  // namespace crema::cuda
