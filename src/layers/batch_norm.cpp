// y = act((x - mean) / sqrt(variance + eps)) per channel (axis 1). The parameters are running sums
// of means and of sample variances and the factor that divides them; forward updates them whenever
// it uses the batch's own statistics. With scale_bias (NVCaffe) the layer multiplies by parameter 3
// and adds parameter 4 itself, in the way in which it absorbs a Scale layer.
#include "ops/kernels/batch_norm.h"

#include <glog/logging.h>

#include <algorithm>

#include "layers/checks.h"
#include "layers/common.h"

namespace crema {
namespace {

class BatchNormLayer : public Layer {
 public:
  using Layer::Layer;

  Shapes infer(const Shapes& bottom) override {
    const BatchNormParameter& p = param_.batch_norm_param();
    require(bottom[0].axes() >= 1, bottom_text(param_, 0), " must have at least one axis");
    require(p.eps() >= 0, "eps: must not be negative");
    const int count = p.scale_bias() ? 5 : 3;
    require(param_.param_size() <= count, "param: ", param_.param_size(),
            " are given, but BatchNorm has ", count, " parameters",
            p.scale_bias() ? "" : " (5 with scale_bias)");
    for (int i = 0; i < std::min(param_.param_size(), 3); ++i) {
      require(param_.param(i).lr_mult() == 0,
              "lr_mult: must be 0: BatchNorm's parameters are statistics that forward updates; ",
              "a Scale layer behind it learns");
    }
    // BVLC: a blob of one axis is one channel (Caffe reads an axis that is not there and aborts).
    shape_ = bottom[0].axes() == 1 ? Shape{bottom[0][0], 1} : bottom[0];
    params_.resize(static_cast<size_t>(count));
    declare(params_[0], {shape_[1]}, constant_filler(0), false);
    declare(params_[1], {shape_[1]}, constant_filler(0), false);
    declare(params_[2], {1}, constant_filler(0), false);
    if (p.scale_bias()) {
      declare(params_[3], {shape_[1]},
              p.has_scale_filler() ? p.scale_filler() : constant_filler(1));
      declare(params_[4], {shape_[1]}, p.bias_filler());
      affine_ = std::span<Param>(params_).subspan(3);
    }
    return {bottom[0]};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.accumulates = true;
    traits.backward_reads_bottoms = uses_stored() && affine_.empty() ? 0 : 1;  // not the residual
    traits.backward_reads_tops = act_.kind == ActKind::none ? 0 : 1;
    traits.changes_params = !uses_stored();
    traits.low = Low::follows;
    return traits;
  }

  bool takes_low(const Ops& ops, const PlanContext& context) const override {
    const DType type = context.top[0].dtype;
    return ops.computes(Family::norm, type) && ops.computes(Family::elements, type) &&
           ops.computes(Family::unary, type);
  }

  bool absorb_sum() override {
    if (act_.kind != ActKind::none || has_residual_) return false;
    has_residual_ = true;
    return true;
  }

  bool absorb(const Act& act) override {
    if (act_.kind != ActKind::none || act.slope < 0) return false;
    act_ = act;
    return true;
  }

  bool absorb_affine(std::span<Param> affine) override {
    if (act_.kind != ActKind::none || has_residual_ || !affine_.empty() ||
        affine[0].shape != channel_shape()) {
      return false;
    }
    affine_ = affine;
    return true;
  }

  bool is_channel_map() const override {
    return uses_stored() && act_.kind == ActKind::none && !has_residual_;
  }

  void channel_map(Ops& ops, Tensor scale, Tensor shift) override {
    run(ops,
        BatchNormMap{sum(0), sum(1), params_[2].value.f32(), gamma().f32(), beta().f32(),
                     scale.f32(), shift.f32(), param_.batch_norm_param().eps()},
        shape_[1]);
  }

  Needs plan(Ops& ops, const PlanContext& context) override {
    NormDesc desc{.x = {shape_, context.bottom[0].dtype, context.bottom[0].layout},
                  .eps = param_.batch_norm_param().eps(),
                  .global_stats = uses_stored(),
                  .affine = !affine_.empty(),
                  .train = context.train,
                  .act = {}};
    if (!has_residual_) desc.act = act_;
    plan_ = ops.plan(desc);
    keeps_statistics_ = context.train || context.recompute;
    const size_t bytes = TensorDesc{channel_shape()}.bytes();
    parts_.clear();
    plan_part_ = parts_.add(plan_->needs());
    masked_desc_ = desc.x;
    const bool masks = context.train && has_residual_ && act_.kind != ActKind::none;
    masked_part_ = parts_.add({.scratch = masks ? masked_desc_.bytes() : 0});
    again_plan_.reset();
    if (context.recompute && !uses_stored()) {
      desc.global_stats = true;
      desc.train = false;
      again_plan_ = ops.plan(desc);
      again_part_ = parts_.add(again_plan_->needs());
    }
    for (int& part : statistics_part_)
      part = parts_.add(keeps_statistics_ ? Needs{.saved = bytes} : Needs{.scratch = bytes});
    return parts_.total();
  }

  void bind(const Workspace& workspace) override {
    plan_->bind(parts_.part(workspace, plan_part_));
    if (again_plan_) again_plan_->bind(parts_.part(workspace, again_part_));
    masked_ = tensor_of(parts_.part(workspace, masked_part_).scratch, masked_desc_);
    mean_ = statistics(workspace, 0);
    variance_ = statistics(workspace, 1);
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    const float* const factor = params_[2].value.f32();
    if (uses_stored()) {
      warn_if_unfilled(ops);
      run(ops, BatchNormStored{sum(0), sum(1), factor, mean_.f32(), variance_.f32()}, shape_[1]);
    }
    plan_->forward(view(bottom[0]), mean_, variance_, gamma(), beta(), view(top[0]));
    add_residual(ops, bottom, top[0]);
    if (!uses_stored()) {
      const auto m = static_cast<float>(shape_.count() / shape_[1]);
      run(ops,
          BatchNormUpdate{mean_.f32(), variance_.f32(), sum(0), sum(1), params_[2].value.f32(),
                          param_.batch_norm_param().moving_average_fraction(),
                          m > 1 ? m / (m - 1) : 1.0f},
          shape_[1]);
    }
  }

  /// With the statistics that forward kept, which are not taken or averaged again.
  void forward_again(Ops& ops, CTensors bottom, Tensors top) override {
    NormPlan& plan = again_plan_ ? *again_plan_ : *plan_;
    plan.forward(view(bottom[0]), mean_, variance_, gamma(), beta(), view(top[0]));
    add_residual(ops, bottom, top[0]);
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad dgamma = affine_.empty() ? Grad() : args.dparams[3];
    const Grad dbeta = affine_.size() > 1 ? args.dparams[4] : Grad();
    const Grad dx{view(args.dbottom[0].t), args.dbottom[0].how};
    const Grad dresidual = has_residual_ ? args.dbottom[1] : Grad();
    CTensor dy = args.dtop[0];
    if (has_residual_ && act_.kind != ActKind::none) {
      // What the residual's gradient is to be overwritten with is computed right there.
      const bool is_in_place = dresidual && dresidual.how == Write::overwrite;
      const Tensor masked = is_in_place ? dresidual.t : masked_;
      act_backward(ops, act_, args.top[0], dy, masked);
      dy = masked;
    }
    if (dx || dgamma || dbeta) {
      plan_->backward(view(args.bottom[0]), view(args.top[0]), mean_, variance_, gamma(), view(dy),
                      dx, dgamma, dbeta);
    }
    residual_backward(ops, dy, dresidual);
  }

 private:
  bool uses_stored() const {
    const BatchNormParameter& p = param_.batch_norm_param();
    return p.has_use_global_stats() ? p.use_global_stats() : phase() == TEST;
  }
  Shape channel_shape() const { return {shape_[1]}; }
  float* sum(size_t i) const { return params_[i].value.f32(); }
  CTensor gamma() const { return affine_.empty() ? CTensor() : CTensor(affine_[0].value); }
  CTensor beta() const { return affine_.size() < 2 ? CTensor() : CTensor(affine_[1].value); }
  CTensor view(const CTensor& t) const { return {t.data, {shape_, t.desc.dtype, t.desc.layout}}; }
  Tensor view(const Tensor& t) const { return {t.data, {shape_, t.desc.dtype, t.desc.layout}}; }

  Tensor statistics(const Workspace& workspace, size_t i) const {
    const Workspace part = parts_.part(workspace, statistics_part_[i]);
    return f32_of(keeps_statistics_ ? part.saved : part.scratch, {channel_shape()});
  }

  void add_residual(Ops& ops, CTensors bottom, const Tensor& y) const {
    if (!has_residual_) return;
    const bool is_relu = act_.kind == ActKind::relu;
    weighted_sum(ops, y, bottom[1], y, {}, is_relu ? act_ : Act());
    if (act_.kind != ActKind::none && !is_relu) {
      ops.unary(unary_of(act_), unary_args_of(act_), y, y);
    }
  }

  /// BVLC: Caffe divides by sqrt(eps) without a word.
  void warn_if_unfilled(Ops& ops) {
    if (phase() != TRAIN || has_checked_) return;
    has_checked_ = true;
    float factor = 0;
    ops.download(params_[2].value, &factor);
    if (factor == 0) {
      LOG(WARNING)
          << "layer \"" << param_.name()
          << "\": use_global_stats is true, but the stored statistics are "
          << "empty: x is divided by sqrt(eps). Load weights, or leave use_global_stats unset";
    }
  }

  Shape shape_;  // of the bottom, with a channel axis
  Act act_;
  std::span<Param> affine_;    // own, or of a Scale layer that was absorbed
  bool has_residual_ = false;  // bottom 1 is added: a sum was absorbed
  std::unique_ptr<NormPlan> plan_,
      again_plan_;  // again: what forward_again uses for stored numbers
  WorkspaceParts parts_;
  int plan_part_ = 0, again_part_ = 0, masked_part_ = 0;
  TensorDesc masked_desc_;
  Tensor masked_;
  int statistics_part_[2] = {};
  bool keeps_statistics_ = false, has_checked_ = false;
  Tensor mean_, variance_;
};

REGISTER_LAYER("BatchNorm", BatchNormLayer)

}  // namespace
}  // namespace crema
