// Spatial pyramid pooling (He et al. 2014): level l pools each plane into 2^l x 2^l bins; the
// levels lie side by side in y [N, C * bins]. A pyramid of height 1 is one global pooling.
#include "ops/kernels/spp.h"

#include <algorithm>

#include "layers/checks.h"
#include "layers/pool_shape.h"

namespace crema {
namespace {

class SppLayer : public Layer {
 public:
  using Layer::Layer;

  Shapes infer(const Shapes& bottom) override {
    const SPPParameter& p = param_.spp_param();
    require(bottom[0].axes() == 4, bottom_text(param_, 0), " of shape ", bottom[0],
            " must have 4 axes (N, C, H, W)");
    require(p.has_pyramid_height() && p.pyramid_height() >= 1,
            "pyramid_height: must be at least 1");
    require(p.pyramid_height() <= 30, "pyramid_height: ", p.pyramid_height(), " is too large");
    levels_.clear();
    row_ = 0;
    for (uint32_t i = 0; i < p.pyramid_height(); ++i) {
      levels_.push_back(level(i, bottom[0]));
      levels_.back().offset = row_;
      row_ += levels_.back().row();
    }
    return {is_single() ? levels_[0].shape_of_top : Shape{bottom[0][0], row_}};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.accumulates = true;
    traits.backward_reads_tops = 0;
    if (pool_kind(param_.spp_param().pool()) == PoolKind::average)
      traits.backward_reads_bottoms = 0;
    traits.has_backward =
        pool_kind(param_.spp_param().pool()) != PoolKind::stochastic || phase() == TRAIN;
    return traits;
  }

  Needs plan(Ops& ops, const PlanContext& context) override {
    parts_.clear();
    size_t largest = 0;
    for (size_t i = 0; i < levels_.size(); ++i) {
      Level& level = levels_[i];
      const size_t bytes = TensorDesc{level.shape_of_top}.bytes();
      largest = std::max(largest, bytes);
      level.plan = ops.plan(describe(level, i, context));
      level.plan_part = parts_.add(level.plan->needs());
      level.y_part = parts_.add(context.train ? Needs{.saved = bytes} : Needs{.scratch = bytes});
    }
    dy_part_ = parts_.add({.scratch = context.train ? largest : 0});
    return parts_.total();
  }

  void bind(const Workspace& workspace) override {
    for (Level& level : levels_) {
      level.plan->bind(parts_.part(workspace, level.plan_part));
      const Workspace y = parts_.part(workspace, level.y_part);
      level.y = f32_of(y.saved ? y.saved : y.scratch, {level.shape_of_top});
    }
    dy_ = parts_.part(workspace, dy_part_).scratch;
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    for (const Level& level : levels_) {
      level.plan->forward(bottom[0], level.y, {});
      run(ops,
          SppCopy{level.y.f32(), top[0].f32() + level.offset, level.row(), row_,
                  Divider(level.row())},
          level.y.count());
    }
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    Grad dx = args.dbottom[0];
    if (!dx) return;
    for (const Level& level : levels_) {
      const Tensor dy = f32_of(dy_, level.y.desc);
      run(ops,
          SppCopy{args.dtop[0].f32() + level.offset, dy.f32(), row_, level.row(),
                  Divider(level.row())},
          dy.count());
      level.plan->backward(args.bottom[0], level.y, dy, dx);
      dx.how = Write::accumulate;
    }
  }

 private:
  struct Level {
    PoolShape shape;
    Shape shape_of_top;
    int64_t offset = 0;  // in a row of the top
    std::unique_ptr<PoolPlan> plan;
    int plan_part = 0, y_part = 0;
    Tensor y;
    int64_t row() const { return shape_of_top.count(1); }
  };

  bool is_single() const { return levels_.size() == 1; }

  static Level level(uint32_t index, const Shape& bottom) {
    const int64_t bins = int64_t{1} << index;
    Level level;
    level.shape = {{2, {}}, {2, {}}, {2, {}}, {2, {}}};
    level.shape_of_top = bottom.slice(0, 2);
    for (int i = 0; i < 2; ++i) {
      const int64_t size = bottom[2 + i];
      const int64_t kernel = (size + bins - 1) / bins;
      const int64_t pad = (kernel * bins - size + 1) / 2;
      require(pad < kernel, "pyramid_height: level ", index, " would cut ", size,
              " rows or columns into ", bins, " bins");
      level.shape.kernel[i] = level.shape.stride[i] = kernel;
      level.shape.pad[i] = pad;
      level.shape_of_top.push_back(pool_output(size, kernel, kernel, pad, true));
    }
    return level;
  }

  PoolDesc describe(const Level& level, size_t index, const PlanContext& context) const {
    PoolDesc desc{.x = context.bottom[0],
                  .y = {level.shape_of_top},
                  .kind = pool_kind(param_.spp_param().pool()),
                  .kernel = level.shape.kernel,
                  .stride = level.shape.stride,
                  .pad = level.shape.pad,
                  .mask = false,
                  .train = context.train};
    if (desc.kind == PoolKind::stochastic) {
      desc.train = phase() == TRAIN;
      desc.seed = mix_key(random_key("pooling"), index);
    }
    return desc;
  }

  std::vector<Level> levels_;
  int64_t row_ = 0;
  WorkspaceParts parts_;
  int dy_part_ = 0;
  Tensor dy_;
};

REGISTER_LAYER("SPP", SppLayer)

}  // namespace
}  // namespace crema
