// Transposes around an nhwc plan.
#include "ops/cpu/conv_nchw.h"

#include "ops/cpu/dnnl_util.h"

namespace crema {
namespace {

class NchwConvPlan : public ConvPlan {
 public:
  NchwConvPlan(Ops& ops, const ConvDesc& desc, std::unique_ptr<ConvPlan> inner)
      : ops_(ops), desc_(desc), inner_(std::move(inner)) {
    x_nhwc_.desc = desc.x;
    y_nhwc_.desc = residual_nhwc_.desc = desc.y;
    x_nhwc_.desc.layout = y_nhwc_.desc.layout = residual_nhwc_.desc.layout = Layout::nhwc;
    x_nchw_.desc = desc.x;
  }

  Needs needs() const override {
    Needs needs = inner_->needs();
    Parts parts;
    parts.add(needs.scratch);
    for (const Tensor* t : {&x_nhwc_, &y_nhwc_, &residual_nhwc_, &x_nchw_}) {
      parts.add(wants(*t) ? t->desc.bytes() : 0);
    }
    needs.scratch = parts.total();
    return needs;
  }

  void bind(const Workspace& workspace) override {
    Parts parts;
    parts.add(inner_->needs().scratch);
    for (Tensor* t : {&x_nhwc_, &y_nhwc_, &residual_nhwc_, &x_nchw_}) {
      t->data = part(workspace.scratch, parts.add(wants(*t) ? t->desc.bytes() : 0));
    }
    inner_->bind(workspace);
  }

  void weights_changed(CTensor w) override { inner_->weights_changed(w); }

  void forward(CTensor x, CTensor w, CTensor b, CTensor residual, Tensor y) override {
    ops_.convert(x, x_nhwc_);
    if (residual) ops_.convert(residual, residual_nhwc_);
    inner_->forward(x_nhwc_, w, b, residual ? CTensor(residual_nhwc_) : CTensor{}, y_nhwc_);
    ops_.convert(y_nhwc_, y);
  }

  void backward_data(CTensor dy, CTensor w, Grad dx) override {
    if (!dx) return;
    ops_.convert(dy, y_nhwc_);
    inner_->backward_data(y_nhwc_, w, {x_nhwc_, Write::overwrite});
    if (dx.how == Write::overwrite) return ops_.convert(x_nhwc_, dx.t);
    ops_.convert(x_nhwc_, x_nchw_);
    ops_.add(x_nchw_, dx.t);
  }

  void backward_params(CTensor x, CTensor dy, Grad dw, Grad db) override {
    ops_.convert(x, x_nhwc_);
    ops_.convert(dy, y_nhwc_);
    inner_->backward_params(x_nhwc_, y_nhwc_, dw, db);
  }

 private:
  bool wants(const Tensor& t) const {
    if (&t == &residual_nhwc_) return desc_.residual;
    return &t != &x_nchw_ || (desc_.train && desc_.need_dx);
  }

  Ops& ops_;
  ConvDesc desc_;
  std::unique_ptr<ConvPlan> inner_;
  Tensor x_nhwc_, y_nhwc_, residual_nhwc_;
  Tensor x_nchw_;  // a gradient before it is added
};

}  // namespace

std::unique_ptr<ConvPlan> make_nchw_conv(Ops& ops, const ConvDesc& desc,
                                         std::unique_ptr<ConvPlan> inner) {
  return std::make_unique<NchwConvPlan>(ops, desc, std::move(inner));
}

}  // namespace crema
