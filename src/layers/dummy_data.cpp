// DummyData: tops of written shapes, filled by data_filler. BVLC: constants are filled once, so
// whatever writes into them stays; here every forward fills anew, random fillers with new draws.
#include "ops/kernels/dummy_data.h"

#include <algorithm>

#include "layers/checks.h"
#include "layers/filler.h"

namespace crema {
namespace {

class DummyDataLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {0, 0, 1, -1}; }

  Shapes infer(const Shapes&) override {
    const DummyDataParameter& p = param_.dummy_data_param();
    check_size("data_filler", p.data_filler_size(), true);
    Shapes top;
    draws_.clear();
    for (int i = 0; i < param_.top_size(); ++i) {
      top.push_back(p.shape_size() > 0 ? written_shape(i) : legacy_shape(i));
      const int filler = p.data_filler_size() == 1 ? 0 : i;
      draws_.push_back(p.data_filler_size() == 0 ? FillerDraw{}
                                                 : filler_draw(p.data_filler(filler), top.back()));
    }
    return top;
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.has_backward = false;
    for (const FillerDraw& draw : draws_) {
      traits.repeatable &= draw.kind == FillerKind::constant || draw.kind == FillerKind::bilinear;
    }
    return traits;
  }

  Needs plan(Ops&, const PlanContext& context) override {
    int64_t rows = 0;
    for (const TensorDesc& top : context.top) rows = std::max(rows, top.shape.dim_or_one(0));
    return {.scratch = static_cast<size_t>(rows) * sizeof(float)};
  }
  void bind(const Workspace& workspace) override { totals_ = workspace.scratch; }

  void forward(Ops& ops, CTensors, Tensors top) override {
    for (size_t i = 0; i < top.size(); ++i) fill(ops, i, top[i]);
  }

 private:
  void check_size(const char* field, int size, bool may_be_missing) const {
    const int tops = param_.top_size();
    require(size == 1 || size == tops || (size == 0 && may_be_missing), field,
            ": give 1 or one per top (", tops, "), not ", size);
  }

  Shape written_shape(int i) const {
    const DummyDataParameter& p = param_.dummy_data_param();
    require(p.num_size() + p.channels_size() + p.height_size() + p.width_size() == 0,
            "shape and the older num, channels, height, width exclude each other");
    check_size("shape", p.shape_size(), false);
    return shape_of(p.shape(p.shape_size() == 1 ? 0 : i));
  }

  Shape legacy_shape(int i) const {
    const DummyDataParameter& p = param_.dummy_data_param();
    require(p.num_size() > 0, "needs a shape { dim: ... } for each top, or one for all");
    BlobShape shape;
    const auto take = [&](const char* field, const auto& sizes) {
      check_size(field, sizes.size(), false);
      shape.add_dim(sizes.Get(sizes.size() == 1 ? 0 : i));
    };
    take("num", p.num());
    take("channels", p.channels());
    take("height", p.height());
    take("width", p.width());
    return shape_of(shape);
  }

  void fill(Ops& ops, size_t i, const Tensor& y) const {
    const FillerDraw& draw = draws_[i];
    const auto a = static_cast<float>(draw.a), b = static_cast<float>(draw.b);
    const uint64_t* forward_count = &ops.step_scalars()->forward_count;
    const uint64_t key = mix_key(random_key("dummy data"), i);
    switch (draw.kind) {
      case FillerKind::constant:
        return ops.fill(a, y);
      case FillerKind::uniform:
        return run(ops, UniformFill{y.f32(), forward_count, key, a, b - a}, y.count());
      case FillerKind::gaussian:
        return run(ops,
                   GaussianFill{y.f32(), forward_count, key, a, b, static_cast<float>(draw.keep)},
                   y.count());
      case FillerKind::bilinear:
        return run(ops, BilinearFill{y.f32(), y.shape()[3], a, b}, y.count());
      case FillerKind::unitball:
        break;
    }
    const int64_t rows = y.shape().dim_or_one(0), cols = y.count() / rows;
    auto* totals = static_cast<float*>(totals_.data);
    run(ops, UniformFill{y.f32(), forward_count, key, 0, 1}, y.count());
    run_rows(ops, RowTotals{y.f32(), totals, cols}, rows, cols);
    run(ops, DivideByTotal{totals, y.f32(), cols}, y.count());
  }

  std::vector<FillerDraw> draws_;
  Tensor totals_;
};

REGISTER_LAYER("DummyData", DummyDataLayer)

}  // namespace
}  // namespace crema
