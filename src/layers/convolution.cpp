// y = act(b + sum over the window of w * x), cross-correlation over any number of spatial axes,
// with groups and dilation. Deconvolution is the same plan with bottom and top exchanged.
#include <glog/logging.h>

#include "layers/checks.h"
#include "layers/common.h"
#include "layers/window.h"
#include "ops/kernels/bias.h"
#include "ops/kernels/finite_check.h"
#include "ops/kernels/fold.h"

namespace crema {
namespace {

/// What convolution and its transpose share: fields, parameters, the plan. "inner" is the
/// convolution's x, "outer" its y.
class ConvolutionBase : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {1, -1, 1, -1}; }

  Shapes infer(const Shapes& bottom) override {
    check_bottoms(bottom);
    const ConvolutionParameter& p = param_.convolution_param();
    shape_ = read_conv_shape(p, bottom[0]);
    outputs_ = require_outputs(p.has_num_output(), p.num_output());
    groups_ = group_count();
    out_ = output_size();
    Shape top = bottom[0].slice(0, shape_.axis);
    top.push_back(outputs_);
    for (int i = 0; i < out_.axes; ++i) top.push_back(out_[i]);
    require_countable("top", top);
    declare_params();
    return Shapes(bottom.size(), top);
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = shape_.axis == 1;
    traits.backward_reads_tops = act_.kind == ActKind::none ? 0 : 1;
    return traits;
  }

  std::optional<Layout> preferred_layout(const Ops& ops, const Shapes& bottom,
                                         const Shapes& top) const override {
    if (shape_.axis != 1 || shape_.size.axes == 0) return std::nullopt;
    return ops.preferred(describe({.shape = bottom[0]}, {.shape = top[0]}));
  }

  void params_changed(Ops&) override { plan_->weights_changed(weights()); }

 protected:
  virtual SpatialDims output_size() const = 0;
  /// The first two sizes of the weights.
  virtual std::pair<int64_t, int64_t> weight_channels() const = 0;
  virtual ConvDesc describe(const TensorDesc& bottom, const TensorDesc& top) const = 0;

  bool has_bias() const { return param_.convolution_param().bias_term(); }
  CTensor bias() const { return has_bias() ? CTensor(params_[1].value) : CTensor(); }
  CTensor weights() const { return {params_[0].value.data, {weight_shape(), DType::f32}}; }

  /// A conv problem in the library's terms: [batch, channels, spatial...] with at least one spatial
  /// axis.
  ConvDesc base_desc() const {
    ConvDesc desc;
    desc.w = {.shape = weight_shape()};
    desc.pad = at_least_one_axis(shape_.pad, 0);
    desc.stride = at_least_one_axis(shape_.stride, 1);
    desc.dilation = at_least_one_axis(shape_.dilation, 1);
    desc.groups = static_cast<int>(groups_);
    return desc;
  }

  TensorDesc folded(const TensorDesc& desc) const {
    Shape shape{shape_.batch};
    for (int i = shape_.axis; i < desc.shape.axes(); ++i) shape.push_back(desc.shape[i]);
    if (shape_.size.axes == 0) shape.push_back(1);
    return {shape, desc.dtype, desc.layout};
  }
  CTensor folded(const CTensor& tensor) const { return {tensor.data, folded(tensor.desc)}; }
  Tensor folded(const Tensor& tensor) const { return {tensor.data, folded(tensor.desc)}; }
  Grad folded(const Grad& gradient) const { return {folded(gradient.t), gradient.how}; }

  ConvShape shape_;
  SpatialDims out_;
  int64_t outputs_ = 0, groups_ = 1;
  Act act_;
  std::unique_ptr<ConvPlan> plan_;
  WorkspaceParts parts_;

 private:
  void check_bottoms(const Shapes& bottom) const {
    require(param_.top_size() == static_cast<int>(bottom.size()), "top: ", param_.top_size(),
            " tops for ", bottom.size(), " bottoms; each bottom has a top");
    for (size_t i = 1; i < bottom.size(); ++i) {
      require(bottom[i] == bottom[0], bottom_text(param_, static_cast<int>(i)), " of shape ",
              bottom[i], " must have the shape of ", bottom_text(param_, 0), ", ", bottom[0]);
    }
  }

  int64_t group_count() const {
    const ConvolutionParameter& p = param_.convolution_param();
    // The forks' depthwise types have one group per channel where `group` is not written.
    const bool is_depthwise =
        param_.type() == "DepthwiseConvolution" || param_.type() == "ConvolutionDepthwise";
    const int64_t groups = is_depthwise && !p.has_group() ? shape_.channels : p.group();
    require(groups >= 1, "group: must be at least 1");
    require(shape_.channels % groups == 0, "group: ", groups, " must divide the ", shape_.channels,
            " channels of ", bottom_text(param_, 0));
    require(outputs_ % groups == 0, "group: ", groups, " must divide num_output ", outputs_);
    return groups;
  }

  void declare_params() {
    const ConvolutionParameter& p = param_.convolution_param();
    params_.resize(p.bias_term() ? 2 : 1);
    const auto [first, second] = weight_channels();
    Shape shape{first, second};
    for (int i = 0; i < shape_.kernel.axes; ++i) shape.push_back(shape_.kernel[i]);
    require_countable("weights", shape);
    declare(params_[0], shape, p.weight_filler());
    if (p.bias_term()) declare(params_[1], {outputs_}, p.bias_filler());
  }

  Shape weight_shape() const {
    Shape shape = params_[0].shape;
    if (shape_.size.axes == 0) shape.push_back(1);
    return shape;
  }

  static SpatialDims at_least_one_axis(const SpatialDims& dims, int64_t value) {
    return dims.axes > 0 ? dims : SpatialDims{1, {value}};
  }
};

class ConvolutionLayer : public ConvolutionBase {
 public:
  using ConvolutionBase::ConvolutionBase;

  Shapes infer(const Shapes& bottom) override {
    return ConvolutionBase::infer(has_residual_ ? Shapes{bottom[0]} : bottom);
  }

  LayerTraits traits() const override {
    LayerTraits traits = ConvolutionBase::traits();
    traits.accumulates = true;
    traits.low = Low::gains;
    if (has_residual_) traits.backward_reads_bottoms = 1;
    return traits;
  }

  bool takes_low(const Ops& ops, const PlanContext& context) const override {
    return !ops.why_not(problem_of(context)) &&
           (act_.kind == ActKind::none || ops.computes(Family::unary, context.top[0].dtype));
  }

  bool absorb_sum() override {
    if (param_.top_size() != 1 || act_.kind != ActKind::none || has_residual_) return false;
    has_residual_ = true;
    return true;
  }

  bool absorb(const Act& act) override {
    if (param_.top_size() != 1 || act_.kind != ActKind::none || act.slope < 0) return false;
    act_ = act;
    return true;
  }

  bool absorb_channel_map(Layer& map) override {
    if (param_.top_size() != 1 || act_.kind != ActKind::none || map_ != nullptr || has_residual_) {
      return false;
    }
    map_ = &map;
    return true;
  }

  Needs plan(Ops& ops, const PlanContext& context) override {
    const ConvDesc desc = problem_of(context);
    plan_ = ops.plan(desc);
    parts_.clear();
    plan_part_ = parts_.add(plan_->needs());
    masked_desc_ = desc.y;
    const bool masks = context.train && act_.kind != ActKind::none;
    masked_part_ = parts_.add({.scratch = masks ? masked_desc_.bytes() : 0});
    if (map_ != nullptr) {
      folded_part_ = parts_.add({.packed = params_[0].value.desc.bytes()});
      for (int& part : channel_part_) part = parts_.add({.packed = outputs_ * sizeof(float)});
    }
    return parts_.total();
  }

  void bind(const Workspace& workspace) override {
    plan_->bind(parts_.part(workspace, plan_part_));
    masked_ = tensor_of(parts_.part(workspace, masked_part_).scratch, masked_desc_);
    if (map_ == nullptr) return;
    folded_weights_ = f32_of(parts_.part(workspace, folded_part_).packed, weights().desc);
    for (int i = 0; i < 3; ++i) {
      channel_[i] = f32_of(parts_.part(workspace, channel_part_[i]).packed, {Shape{outputs_}});
    }
  }

  void params_changed(Ops& ops) override {
    if (act_.kind != ActKind::none) check_finite(ops);
    if (map_ == nullptr) return ConvolutionBase::params_changed(ops);
    const auto& [scale, shift, folded_bias] = channel_;
    map_->channel_map(ops, scale, shift);
    run(ops,
        FoldWeights{weights().f32(), scale.f32(), folded_weights_.f32(),
                    folded_weights_.count() / outputs_},
        folded_weights_.count());
    run(ops, FoldBias{bias().f32(), scale.f32(), shift.f32(), folded_bias.f32()}, outputs_);
    plan_->weights_changed(folded_weights_);
  }

  void forward(Ops&, CTensors bottom, Tensors top) override {
    const CTensor w = map_ == nullptr ? weights() : CTensor(folded_weights_);
    const CTensor b = map_ == nullptr ? bias() : CTensor(channel_[2]);
    const CTensor residual = has_residual_ ? folded(bottom[1]) : CTensor();
    for (size_t i = 0; i < top.size(); ++i) {
      plan_->forward(folded(bottom[i]), w, b, residual, folded(top[i]));
    }
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    bool is_first = true;
    for (size_t i = 0; i < args.top.size(); ++i) {
      if (!args.dtop[i]) {
        no_gradient(ops, args.dbottom[i]);
        continue;
      }
      const Grad dresidual = has_residual_ ? folded(args.dbottom[1]) : Grad();
      const CTensor dy = before_activation(ops, args.top[i], args.dtop[i], dresidual);
      if (args.dbottom[i]) plan_->backward_data(dy, weights(), folded(args.dbottom[i]));
      Grad dw = param_gradient(args, 0, is_first);
      dw.t.desc = weights().desc;
      const Grad db = has_bias() ? param_gradient(args, 1, is_first) : Grad();
      if (dw || db) plan_->backward_params(folded(args.bottom[i]), dy, dw, db);
      residual_backward(ops, dy, dresidual);
      is_first = false;
    }
  }

 protected:
  SpatialDims output_size() const override { return conv_output(shape_); }
  std::pair<int64_t, int64_t> weight_channels() const override {
    return {outputs_, shape_.channels / groups_};
  }

  ConvDesc describe(const TensorDesc& bottom, const TensorDesc& top) const override {
    ConvDesc desc = base_desc();
    desc.x = folded(bottom);
    desc.y = folded(top);
    desc.bias = has_bias() || map_ != nullptr;
    desc.residual = has_residual_;
    desc.act = act_;
    return desc;
  }

 private:
  ConvDesc problem_of(const PlanContext& context) const {
    ConvDesc desc = describe(context.bottom[0], context.top[0]);
    desc.need_dx = false;
    for (size_t i = 0; i < context.top.size(); ++i) {
      desc.need_dx = desc.need_dx || context.need_dx[i] != 0;
    }
    desc.train = context.train;
    return desc;
  }

  /// An activation inside a library's kernel makes 0 of NaN, so that weights which went astray
  /// would be a layer of zeros that nobody hears of.
  void check_finite(Ops& ops) const {
    constexpr int64_t kPiece = 4096;
    for (const Param& param : params_) {
      const int64_t count = param.value.count();
      run_rows(ops,
               FiniteCheck{.x = param.value.f32(),
                           .fault = ops.fault(),
                           .count = count,
                           .piece = kPiece,
                           .layer = context_.index},
               (count + kPiece - 1) / kPiece, kPiece);
    }
  }

  /// The gradient of the sum. What the residual's gradient is to be overwritten with is computed
  /// right there.
  CTensor before_activation(Ops& ops, const CTensor& y, const CTensor& dy,
                            const Grad& dresidual) const {
    if (act_.kind == ActKind::none) return folded(dy);
    const bool is_in_place = dresidual && dresidual.how == Write::overwrite;
    const Tensor masked = is_in_place ? dresidual.t : masked_;
    act_backward(ops, act_, folded(y), folded(dy), masked);
    return masked;
  }

  int plan_part_ = 0, masked_part_ = 0, folded_part_ = 0;
  int channel_part_[3] = {};
  TensorDesc masked_desc_;
  Tensor masked_;
  bool has_residual_ = false;  // bottom 1 is added: a sum was absorbed
  Layer* map_ = nullptr;       // a channel map that was absorbed: its numbers are folded in
  Tensor folded_weights_;
  std::array<Tensor, 3> channel_;  // scale, shift, folded bias
};

/// The bottom is the convolution's y, the top its x: forward is the convolution's backward and the
/// reverse.
class DeconvolutionLayer : public ConvolutionBase {
 public:
  using ConvolutionBase::ConvolutionBase;

  Shapes infer(const Shapes& bottom) override {
    Shapes tops = ConvolutionBase::infer(bottom);
    const ConvolutionParameter& p = param_.convolution_param();
    if (p.weight_filler().type() == "bilinear" && outputs_ > 1 && groups_ != outputs_ &&
        !has_warned_) {
      LOG(WARNING)
          << "layer \"" << param_.name() << "\": a bilinear weight_filler with group " << groups_
          << " adds up all channels of a group; upsampling channel by channel needs group: "
          << outputs_;
      has_warned_ = true;
    }
    return tops;
  }

  Needs plan(Ops& ops, const PlanContext& context) override {
    plan_ = ops.plan(describe(context.bottom[0], context.top[0]));
    return plan_->needs();
  }

  void bind(const Workspace& workspace) override { plan_->bind(workspace); }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    for (size_t i = 0; i < bottom.size(); ++i) {
      const Tensor y = folded(top[i]);
      plan_->backward_data(folded(bottom[i]), weights(), {y, Write::overwrite});
      if (has_bias()) {
        run(ops, BiasForward{y.f32(), bias().f32(), y.f32(), channel_axis(y.desc)}, y.count());
      }
    }
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    bool is_first = true;
    for (size_t i = 0; i < args.bottom.size(); ++i) {
      if (!args.dtop[i]) {
        no_gradient(ops, args.dbottom[i]);
        continue;
      }
      const CTensor dy = folded(args.dtop[i]);
      if (args.dbottom[i]) plan_->forward(dy, weights(), {}, {}, folded(args.dbottom[i].t));
      Grad dw = param_gradient(args, 0, is_first);
      dw.t.desc = weights().desc;
      if (dw) plan_->backward_params(dy, folded(args.bottom[i]), dw, {});
      if (has_bias()) bias_backward(ops, dy, param_gradient(args, 1, is_first));
      is_first = false;
    }
  }

 protected:
  SpatialDims output_size() const override { return deconv_output(shape_); }
  std::pair<int64_t, int64_t> weight_channels() const override {
    return {shape_.channels, outputs_ / groups_};
  }

  ConvDesc describe(const TensorDesc& bottom, const TensorDesc& top) const override {
    ConvDesc desc = base_desc();
    desc.x = folded(top);
    desc.y = folded(bottom);
    return desc;
  }

 private:
  static MiddleAxis channel_axis(const TensorDesc& desc) {
    return {desc.shape[1], desc.layout == Layout::nhwc ? 1 : desc.shape.count(2)};
  }

  void bias_backward(Ops& ops, const CTensor& dy, const Grad& db) const {
    if (!db) return;
    const BiasGradient sum{dy.f32(), db.t.f32(), channel_axis(dy.desc),
                           db.how == Write::accumulate};
    run_rows(ops, sum, outputs_, dy.count() / outputs_);
  }

  bool has_warned_ = false;
};

using DepthwiseConvolutionLayer = ConvolutionLayer;
using ConvolutionDepthwiseLayer = ConvolutionLayer;

REGISTER_LAYER("Convolution", ConvolutionLayer)
REGISTER_LAYER("DepthwiseConvolution", DepthwiseConvolutionLayer)
REGISTER_LAYER("ConvolutionDepthwise", ConvolutionDepthwiseLayer)
REGISTER_LAYER("Deconvolution", DeconvolutionLayer)

}  // namespace
}  // namespace crema
