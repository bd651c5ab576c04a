// BN is two layers, both y = slope (x - mean) / sqrt(variance + eps) + bias per channel. PSPNet's
// and its kin's has 4 blobs (slope, bias, running mean, running variance; running = momentum
// running + (1 - momentum) batch). SegNet's (bn_mode, scale_filler or shift_filler) has 2: bn_mode
// LEARN uses the batch's statistics in every phase, INFERENCE is slope x + bias.
#include "ops/kernels/bn.h"

#include "layers/checks.h"
#include "layers/common.h"
#include "layers/two_forms.h"

namespace crema {
namespace {

class BnBase : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.accumulates = true;
    traits.backward_reads_tops = act_.kind == ActKind::none ? 0 : 1;
    traits.repeatable = !keeps_running();
    traits.changes_params = keeps_running();
    return traits;
  }

  bool absorb(const Act& act) override {
    if (act.slope < 0) return false;
    act_ = act;
    return true;
  }

  bool is_channel_map() const override { return !of_batch() && act_.kind == ActKind::none; }

  void channel_map(Ops& ops, Tensor scale, Tensor shift) override {
    run(ops, BnMap{value(0), value(1), value(2), value(3), scale.f32(), shift.f32(), eps_},
        channels_);
  }

  Needs plan(Ops& ops, const PlanContext& context) override {
    plan_ = ops.plan(NormDesc{.x = {shape_, context.bottom[0].dtype, context.bottom[0].layout},
                              .eps = of_batch() || params_.size() == 4 ? eps_ : 0,
                              .global_stats = !of_batch(),
                              .affine = true,
                              .train = context.train,
                              .act = act_});
    const size_t bytes = static_cast<size_t>(channels_) * sizeof(float);
    parts_.clear();
    plan_part_ = parts_.add(plan_->needs());
    for (int& part : statistics_part_) part = parts_.add({.saved = bytes});
    return parts_.total();
  }

  void bind(const Workspace& workspace) override {
    plan_->bind(parts_.part(workspace, plan_part_));
    for (size_t i = 0; i < 2; ++i) {
      statistics_[i] = f32_of(parts_.part(workspace, statistics_part_[i]).saved, channel_desc());
    }
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    if (!of_batch()) take_stored(ops);
    plan_->forward(view(bottom[0]), statistics_[0], statistics_[1], param(0), param(1),
                   view(top[0]));
    if (keeps_running()) {
      run(ops,
          BnRunning{statistics_[0].f32(), statistics_[1].f32(), params_[2].value.f32(),
                    params_[3].value.f32(), param_.bn_param().momentum()},
          channels_);
    }
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    Grad dslope = param_gradient(args, 0), dbias = param_gradient(args, 1);
    const Grad dx{view(args.dbottom[0].t), args.dbottom[0].how};
    if (!dx && !dslope && !dbias) return;
    dslope.t.desc = dbias.t.desc = channel_desc();
    if (!of_batch()) take_stored(ops);
    plan_->backward(view(args.bottom[0]), view(args.top[0]), statistics_[0], statistics_[1],
                    param(0), view(args.dtop[0]), dx, dslope, dbias);
  }

 protected:
  virtual bool of_batch() const = 0;
  virtual bool keeps_running() const { return false; }

  Shapes infer_channels(const Shape& x) {
    require(x.axes() >= 2, bottom_text(param_, 0), " of shape ", x, " needs a channel axis");
    channels_ = x[1];
    shape_ = x;
    return {x};
  }
  Shape param_shape() const { return {1, channels_, 1, 1}; }

  float eps_ = 1e-5f;

 private:
  TensorDesc channel_desc() const { return {.shape = Shape{channels_}}; }
  const float* value(size_t i) const {
    return i < params_.size() ? params_[i].value.f32() : nullptr;
  }
  CTensor param(size_t i) const { return {params_[i].value.data, channel_desc()}; }
  CTensor view(const CTensor& t) const { return {t.data, {shape_, t.desc.dtype, t.desc.layout}}; }
  Tensor view(const Tensor& t) const { return {t.data, {shape_, t.desc.dtype, t.desc.layout}}; }

  void take_stored(Ops& ops) const {
    for (size_t i = 0; i < 2; ++i) {
      if (params_.size() == 4) {
        ops.convert(param(2 + i), statistics_[i]);
      } else {
        ops.fill(i == 0 ? 0.0f : 1.0f, statistics_[i]);
      }
    }
  }

  int64_t channels_ = 1;
  Shape shape_;
  Act act_;
  std::unique_ptr<NormPlan> plan_;
  WorkspaceParts parts_;
  int plan_part_ = 0, statistics_part_[2] = {};
  Tensor statistics_[2];
};

class RunningBnLayer : public BnBase {
 public:
  using BnBase::BnBase;

  Shapes infer(const Shapes& bottom) override {
    const BNParameter& p = param_.bn_param();
    Shapes tops = infer_channels(bottom[0]);
    require(p.eps() >= 0, "eps: must not be negative, got ", p.eps());
    require(p.momentum() >= 0 && p.momentum() <= 1, "momentum: must be in 0..1, got ",
            p.momentum());
    eps_ = p.eps();
    params_.resize(4);
    declare(params_[0], param_shape(), p.has_slope_filler() ? p.slope_filler() : constant_filler(1),
            !p.frozen());
    declare(params_[1], param_shape(), p.bias_filler(), !p.frozen());
    declare(params_[2], param_shape(), constant_filler(0), false);
    declare(params_[3], param_shape(), constant_filler(1), false);
    return tops;
  }

 protected:
  bool of_batch() const override { return phase() == TRAIN && !param_.bn_param().frozen(); }
  bool keeps_running() const override { return of_batch(); }
};

class SegNetBnLayer : public BnBase {
 public:
  using BnBase::BnBase;

  Shapes infer(const Shapes& bottom) override {
    const BNParameter& p = param_.bn_param();
    require(
        !p.has_slope_filler() && !p.has_bias_filler() && !p.frozen(),
        "bn_param: slope_filler, bias_filler and frozen are PSPNet's, bn_mode, scale_filler and "
        "shift_filler SegNet's: they exclude each other");
    Shapes tops = infer_channels(bottom[0]);
    eps_ = 1e-9f;
    params_.resize(2);
    declare(params_[0], param_shape(),
            p.has_scale_filler() ? p.scale_filler() : constant_filler(1));
    declare(params_[1], param_shape(), p.shift_filler());
    return tops;
  }

 protected:
  bool of_batch() const override { return param_.bn_param().bn_mode() == BNParameter::LEARN; }
};

bool is_segnet_form(const LayerParameter& param) {
  const BNParameter& p = param.bn_param();
  return p.has_bn_mode() || p.has_scale_filler() || p.has_shift_filler() || param.blobs_size() == 2;
}
const TwoFormsRegistrar<SegNetBnLayer, RunningBnLayer> registrar("BN", is_segnet_form);

}  // namespace
}  // namespace crema
