// The items of bottoms 0..n-2 whose selector (the last bottom, one number per item) is not 0. How
// many are left depends on the data: infer gives the upper bound.
#include "ops/kernels/filter.h"

#include "layers/checks.h"
#include "layers/common.h"

namespace crema {
namespace {

class FilterLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, -1, 1, -1}; }

  Shapes infer(const Shapes& bottom) override {
    const size_t blobs = bottom.size() - 1;
    require(param_.top_size() == static_cast<int>(blobs), "needs one top for each bottom but the ",
            "selector (", blobs, "), got ", param_.top_size());
    const Shape& selector = bottom.back();
    require(selector.axes() >= 1 && selector.count() == selector[0],
            bottom_text(param_, static_cast<int>(blobs)), " of shape ", selector,
            " selects: it must hold one value per item");
    for (size_t i = 0; i < blobs; ++i) {
      require(bottom[i].axes() >= 1 && bottom[i][0] == selector[0],
              bottom_text(param_, static_cast<int>(i)), " of shape ", bottom[i], " must have the ",
              selector[0], " items that the selector has");
    }
    items_ = selector[0];
    tops_.assign(bottom.begin(), bottom.end() - 1);
    return tops_;
  }

  bool allow_force_backward(int bottom) const override { return bottom < param_.bottom_size() - 1; }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    traits.accumulates = traits.host_only = true;
    return traits;
  }

  Needs plan(Ops&, const PlanContext& context) override {
    refuse_gradient(param_, context, param_.bottom_size() - 1);
    selector_.resize(static_cast<size_t>(items_));
    picked_.resize(static_cast<size_t>(items_));
    return {.saved = static_cast<size_t>(items_) * sizeof(int32_t)};
  }

  void bind(const Workspace& workspace) override { index_ = workspace.saved; }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    ops.download(bottom.back(), selector_.data());
    int32_t count = 0;
    for (int64_t i = 0; i < items_; ++i) {
      if (selector_[i] != 0) picked_[count++] = static_cast<int32_t>(i);
    }
    const auto* index = static_cast<const int32_t*>(index_.data);
    if (count > 0) ops.upload(picked_.data(), {index_.data, {Shape{count}, DType::i32}});
    for (size_t i = 0; i < tops_.size(); ++i) {
      tops_[i][0] = count;
      const int64_t row = tops_[i].count(1);
      run(ops, FilterRows{bottom[i].f32(), index, top[i].f32(), row}, count * row);
    }
  }

  std::optional<Shapes> shapes_after_forward() const override { return tops_; }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const auto* index = static_cast<const int32_t*>(index_.data);
    for (size_t i = 0; i < tops_.size(); ++i) {
      const Grad& dx = args.dbottom[i];
      if (!dx) continue;
      if (dx.how == Write::overwrite) ops.fill(0, dx.t);
      if (!args.dtop[i]) continue;
      const int64_t row = tops_[i].count(1);
      run(ops, FilterRowsBack{args.dtop[i].f32(), index, dx.t.f32(), row}, tops_[i].count());
    }
  }

 private:
  int64_t items_ = 0;
  Shapes tops_;
  std::vector<float> selector_;
  std::vector<int32_t> picked_;
  Tensor index_;
};

REGISTER_LAYER("Filter", FilterLayer)

}  // namespace
}  // namespace crema
