// Normalize is two layers. SSD's (norm_param; Liu et al., "ParseNet", 2015): y = scale x / norm
// with a learned scale, norm = sqrt(sum x^2 + eps) over a sample or over the channels of a
// position. The face nets' (normalize_param, or no field): over channels, L2 with eps 1e-6 or L1,
// no scale, the norm as a second top.
#include "ops/kernels/normalize.h"

#include "layers/checks.h"
#include "layers/common.h"
#include "layers/two_forms.h"

namespace crema {
namespace {

class NormalizeBase : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.accumulates = true;
    traits.backward_reads_tops = 0;
    return traits;
  }

  Needs plan(Ops&, const PlanContext& context) override {
    const TensorDesc& x = context.bottom[0];
    rows_ = {};
    rows_.channels = x.shape[1];
    rows_.inner = x.layout == Layout::nhwc ? 1 : x.shape.count(2);
    rows_.per_sample = x.shape.count(1);
    rows_.whole_sample = whole_sample_;
    row_count_ = whole_sample_ ? x.shape[0] : x.shape[0] * x.shape.count(2);
    const size_t bytes = static_cast<size_t>(row_count_) * sizeof(float);
    parts_.clear();
    norm_part_ = parts_.add({.saved = bytes});
    dot_part_ = parts_.add({.scratch = bytes});
    return parts_.total();
  }

  void bind(const Workspace& workspace) override {
    norm_ = f32_of(parts_.part(workspace, norm_part_).saved, {.shape = Shape{row_count_}});
    dot_ = f32_of(parts_.part(workspace, dot_part_).scratch, {.shape = Shape{row_count_}});
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    const CTensor& x = bottom[0];
    run_rows(ops, NormalizeNorms{x.f32(), norm_.f32(), rows_, eps_, absolute_}, row_count_,
             cols(x));
    run(ops, NormalizeForward{x.f32(), norm_.f32(), scale(), top[0].f32(), rows_, channel_shared_},
        x.count());
    if (top.size() > 1) ops.convert(reshaped(CTensor(norm_), top[1].shape()), top[1]);
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const CTensor& x = args.bottom[0];
    const CTensor& dy = args.dtop[0];
    if (!params_.empty()) scale_gradient(ops, args);
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    if (dy) {
      run_rows(ops, NormalizeDots{x.f32(), dy.f32(), scale(), dot_.f32(), rows_, channel_shared_},
               row_count_, cols(x));
    }
    run(ops,
        NormalizeBackward{.x = x.f32(),
                          .norm = norm_.f32(),
                          .scale = scale(),
                          .dot = dot_.f32(),
                          .dy = dy.f32(),
                          .dnorm = norm_gradient_ ? args.dtop[1].f32() : nullptr,
                          .dx = dx.t.f32(),
                          .rows = rows_,
                          .shared = channel_shared_,
                          .absolute = absolute_,
                          .accumulate = dx.how == Write::accumulate},
        x.count());
  }

 protected:
  void require_channels(const Shape& x) const {
    require(x.axes() >= 2, bottom_text(param_, 0), " of shape ", x, " needs a channel axis");
  }

  bool whole_sample_ = false, channel_shared_ = false, absolute_ = false, norm_gradient_ = false;
  float eps_ = 0;

 private:
  int64_t cols(const CTensor& x) const { return row_count_ == 0 ? 0 : x.count() / row_count_; }
  const float* scale() const { return params_.empty() ? nullptr : params_[0].value.f32(); }

  void scale_gradient(Ops& ops, const BackwardArgs& args) const {
    const Grad dscale = param_gradient(args, 0);
    if (!dscale || !args.dtop[0]) return;
    const CTensor& x = args.bottom[0];
    const int64_t scales = dscale.t.count();
    run_rows(ops,
             NormalizeScale{x.f32(), norm_.f32(), args.dtop[0].f32(), dscale.t.f32(), rows_,
                            channel_shared_, dscale.how == Write::accumulate},
             scales, x.count() / scales);
  }

  NormRows rows_;
  int64_t row_count_ = 0;
  WorkspaceParts parts_;
  int norm_part_ = 0, dot_part_ = 0;
  Tensor norm_, dot_;
};

class SsdNormalizeLayer : public NormalizeBase {
 public:
  using NormalizeBase::NormalizeBase;

  Shapes infer(const Shapes& bottom) override {
    const NormalizeParameter& p = param_.norm_param();
    require_channels(bottom[0]);
    require(p.eps() >= 0, "eps: must not be negative, got ", p.eps());
    whole_sample_ = p.across_spatial();
    channel_shared_ = p.channel_shared();
    eps_ = p.eps();
    params_.resize(1);
    declare(params_[0], channel_shared_ ? Shape{} : Shape{bottom[0][1]},
            p.has_scale_filler() ? p.scale_filler() : constant_filler(1));
    return {bottom[0]};
  }
};

class FaceNormalizeLayer : public NormalizeBase {
 public:
  using NormalizeBase::NormalizeBase;
  Arity arity() const override { return {1, 1, 1, 2}; }

  Shapes infer(const Shapes& bottom) override {
    const FaceNormalizeParameter& p = param_.normalize_param();
    require_channels(bottom[0]);
    require(p.normalize_type() == "L1" || p.normalize_type() == "L2", "normalize_type: \"",
            p.normalize_type(), "\" must be \"L1\" or \"L2\"");
    require(!p.fix_gradient(), "fix_gradient: true is not supported, leave it out");
    absolute_ = p.normalize_type() == "L1";
    norm_gradient_ = p.bp_norm() && param_.top_size() == 2;
    eps_ = 1e-6f;
    Shape norm = bottom[0];
    norm[1] = 1;
    Shapes tops{bottom[0]};
    if (param_.top_size() > 1) tops.push_back(norm);
    return tops;
  }
};

bool is_ssd_form(const LayerParameter& param) {
  return param.has_norm_param() || param.blobs_size() > 0 || param.param_size() > 0;
}
const TwoFormsRegistrar<SsdNormalizeLayer, FaceNormalizeLayer> registrar("Normalize", is_ssd_form);

}  // namespace
}  // namespace crema
