// y = act(x * w^T + b), x with its axes from `axis` on flattened to one; w is [num_output, K], or
// [K, num_output] with `transpose`.
#include "layers/checks.h"
#include "layers/common.h"

namespace crema {
namespace {

class InnerProductLayer : public Layer {
 public:
  using Layer::Layer;

  Shapes infer(const Shapes& bottom) override {
    const InnerProductParameter& p = param_.inner_product_param();
    outputs_ = require_outputs(p.has_num_output(), p.num_output());
    require(-bottom[0].axes() <= p.axis() && p.axis() < bottom[0].axes(), "axis: ", p.axis(),
            " does not exist in ", bottom_text(param_, 0), " of shape ", bottom[0]);
    const int axis = bottom[0].canonical(p.axis());
    rows_ = bottom[0].count(0, axis);
    inputs_ = bottom[0].count(axis);
    Shape top = bottom[0].slice(0, axis);
    top.push_back(outputs_);
    require_countable("top", top);
    const Shape weights = p.transpose() ? Shape{inputs_, outputs_} : Shape{outputs_, inputs_};
    require_countable("weights", weights);
    params_.resize(p.bias_term() ? 2 : 1);
    declare(params_[0], weights, p.weight_filler());
    if (p.bias_term()) declare(params_[1], {outputs_}, p.bias_filler());
    return {top};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.accumulates = true;
    traits.backward_reads_tops = act_.kind == ActKind::none ? 0 : 1;
    traits.low = Low::gains;
    return traits;
  }

  bool takes_low(const Ops& ops, const PlanContext& context) const override {
    const DType type = context.top[0].dtype;
    return ops.computes(Family::linear, type) &&
           (act_.kind == ActKind::none || ops.computes(Family::unary, type));
  }

  bool absorb(const Act& act) override {
    if (act.slope < 0) return false;
    act_ = act;
    return true;
  }

  Needs plan(Ops& ops, const PlanContext& context) override {
    const InnerProductParameter& p = param_.inner_product_param();
    plan_ = ops.plan(LinearDesc{.m = rows_,
                                .k = inputs_,
                                .n = outputs_,
                                .dtype = context.top[0].dtype,
                                .transposed = p.transpose(),
                                .bias = p.bias_term(),
                                .need_dx = !context.need_dx.empty() && context.need_dx[0] != 0,
                                .train = context.train,
                                .act = act_});
    parts_.clear();
    plan_part_ = parts_.add(plan_->needs());
    masked_desc_ = {y_shape(), context.top[0].dtype};
    const bool masks = context.train && act_.kind != ActKind::none;
    masked_part_ = parts_.add({.scratch = masks ? masked_desc_.bytes() : 0});
    return parts_.total();
  }

  void bind(const Workspace& workspace) override {
    plan_->bind(parts_.part(workspace, plan_part_));
    masked_ = tensor_of(parts_.part(workspace, masked_part_).scratch, masked_desc_);
  }

  void params_changed(Ops&) override { plan_->weights_changed(params_[0].value); }

  void forward(Ops&, CTensors bottom, Tensors top) override {
    const CTensor bias = has_bias() ? CTensor(params_[1].value) : CTensor();
    plan_->forward(reshaped(bottom[0], x_shape()), params_[0].value, bias,
                   reshaped(top[0], y_shape()));
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    CTensor dy = reshaped(args.dtop[0], y_shape());
    if (act_.kind != ActKind::none) {
      act_backward(ops, act_, reshaped(args.top[0], y_shape()), dy, masked_);
      dy = masked_;
    }
    if (args.dbottom[0])
      plan_->backward_data(dy, params_[0].value, reshaped(args.dbottom[0], x_shape()));
    const Grad dw = param_gradient(args, 0);
    const Grad db = has_bias() ? param_gradient(args, 1) : Grad();
    if (dw || db) plan_->backward_params(reshaped(args.bottom[0], x_shape()), dy, dw, db);
  }

 private:
  bool has_bias() const { return param_.inner_product_param().bias_term(); }
  Shape x_shape() const { return {rows_, inputs_}; }
  Shape y_shape() const { return {rows_, outputs_}; }

  int64_t rows_ = 0, inputs_ = 0, outputs_ = 0;
  Act act_;
  std::unique_ptr<LinearPlan> plan_;
  WorkspaceParts parts_;
  int plan_part_ = 0, masked_part_ = 0;
  TensorDesc masked_desc_;
  Tensor masked_;
};

REGISTER_LAYER("InnerProduct", InnerProductLayer)

}  // namespace
}  // namespace crema
