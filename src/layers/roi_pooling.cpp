// ROIPooling (Girshick, "Fast R-CNN", 2015): the maxima of pooled_h x pooled_w bins of each region.
// PSROIPooling (Dai et al., "R-FCN", 2016): the means, each bin of output d from a channel of its
// own. Bottoms: [N, C, H, W], and regions, one row of 5 for each: picture, x1, y1, x2, y2.
#include "ops/kernels/roi_pooling.h"

#include "layers/checks.h"
#include "layers/common.h"

namespace crema {
namespace {

class RoiLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, 2, 1, 1}; }
  bool allow_force_backward(int bottom) const override { return bottom == 0; }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.accumulates = true;
    traits.backward_reads_bottoms = 2;
    traits.backward_reads_tops = 0;
    return traits;
  }

  std::string explain(const Fault& fault) const override {
    return str("picture ", fault.value, " of region ", fault.index, " must be in 0..", x_[0] - 1);
  }

 protected:
  void read_bottoms(const Shapes& bottom, float spatial_scale) {
    x_ = bottom[0];
    require(x_.axes() == 4, bottom_text(param_, 0), " of shape ", x_, " must have four axes");
    require(bottom[1].axes() >= 1 && bottom[1].count() == bottom[1][0] * 5, bottom_text(param_, 1),
            " of shape ", bottom[1], " must hold regions, 5 numbers each");
    require(spatial_scale > 0, "spatial_scale: must be above 0, got ", spatial_scale);
    regions_ = bottom[1][0];
    spatial_scale_ = spatial_scale;
  }

  RoiGrid grid(const CTensor& rois, int64_t pooled_h, int64_t pooled_w) const {
    RoiGrid grid{};
    grid.rois = rois.f32();
    grid.height = x_[2];
    grid.width = x_[3];
    grid.pooled_h = pooled_h;
    grid.pooled_w = pooled_w;
    grid.scale = spatial_scale_;
    grid.batch = static_cast<int>(x_[0]);
    return grid;
  }

  Shape x_;
  int64_t regions_ = 0;

 private:
  float spatial_scale_ = 1;
};

class RoiPoolingLayer : public RoiLayer {
 public:
  using RoiLayer::RoiLayer;

  Shapes infer(const Shapes& bottom) override {
    const ROIPoolingParameter& p = param_.roi_pooling_param();
    require(p.pooled_h() >= 1 && p.pooled_w() >= 1, "pooled_h and pooled_w: must be at least 1");
    read_bottoms(bottom, p.spatial_scale());
    const Shape top{regions_, x_[1], p.pooled_h(), p.pooled_w()};
    require_countable("top", top);
    return {top};
  }

  Needs plan(Ops&, const PlanContext& context) override {
    refuse_gradient(param_, context, 1);
    return {.saved = static_cast<size_t>(context.top[0].count()) * sizeof(int32_t)};
  }
  void bind(const Workspace& workspace) override {
    at_ = static_cast<int32_t*>(workspace.saved.data);
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    const Shape& y = top[0].shape();
    run(ops,
        RoiMaxForward{bottom[0].f32(), top[0].f32(), at_, ops.fault(), grid(bottom[1], y[2], y[3]),
                      x_[1], context_.index},
        top[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    no_gradient(ops, dx);
    const Shape& y = args.dtop[0].shape();
    run(ops,
        RoiMaxBackward{args.dtop[0].f32(), at_, dx.t.f32(), grid(args.bottom[1], y[2], y[3]), x_[1],
                       regions_},
        x_[1]);
  }

 private:
  int32_t* at_ = nullptr;
};

class PsRoiPoolingLayer : public RoiLayer {
 public:
  using RoiLayer::RoiLayer;

  Shapes infer(const Shapes& bottom) override {
    const PSROIPoolingParameter& p = param_.psroi_pooling_param();
    require(p.output_dim() >= 1 && p.group_size() >= 1,
            "output_dim and group_size: must be given and at least 1");
    require(p.has_spatial_scale(), "spatial_scale: missing");
    read_bottoms(bottom, p.spatial_scale());
    group_ = p.group_size();
    outputs_ = p.output_dim();
    require(group_ <= kMaxWindow && x_[1] == outputs_ * group_ * group_, bottom_text(param_, 0),
            " has ", x_[1], " channels, but output_dim * group_size^2 are ",
            outputs_ * group_ * group_);
    const Shape top{regions_, outputs_, group_, group_};
    require_countable("top", top);
    return {top};
  }

  Needs plan(Ops&, const PlanContext& context) override {
    refuse_gradient(param_, context, 1);
    return {};
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    run(ops,
        PsRoiForward{bottom[0].f32(), top[0].f32(), ops.fault(), grid(bottom[1], group_, group_),
                     outputs_, context_.index},
        top[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    no_gradient(ops, dx);
    run(ops,
        PsRoiBackward{args.dtop[0].f32(), dx.t.f32(), grid(args.bottom[1], group_, group_),
                      outputs_, regions_},
        x_[1]);
  }

 private:
  int64_t group_ = 1, outputs_ = 1;
};

REGISTER_LAYER("ROIPooling", RoiPoolingLayer)
REGISTER_LAYER("PSROIPooling", PsRoiPoolingLayer)

}  // namespace
}  // namespace crema
