// Slice: the bottom cut along axis (or the older slice_dim) at slice_point, or into equal parts.
#include "layers/axis_view.h"
#include "layers/checks.h"

namespace crema {
namespace {

class SliceLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {1, 1, 1, -1}; }

  Shapes infer(const Shapes& bottom) override {
    const SliceParameter& p = param_.slice_param();
    require(!p.has_axis() || !p.has_slice_dim(), "axis and slice_dim exclude each other");
    const int wanted = p.has_slice_dim() ? static_cast<int>(p.slice_dim()) : p.axis();
    axis_ = bottom[0].canonical(wanted);
    first_ = starts(bottom[0]);
    Shapes top;
    for (size_t i = 0; i < first_.size(); ++i) {
      Shape part = bottom[0];
      part[axis_] = (i + 1 < first_.size() ? first_[i + 1] : bottom[0][axis_]) - first_[i];
      top.push_back(part);
    }
    return top;
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.accumulates = true;
    traits.tops_alias_bottom = param_.top_size() == 1;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    traits.pieces = Pieces::tops;
    traits.pieces_axis = axis_;
    traits.low = Low::follows;
    return traits;
  }

  bool takes_low(const Ops& ops, const PlanContext& context) const override {
    return ops.computes(Family::elements, context.top[0].dtype);
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    for (size_t i = 0; i < top.size(); ++i) {
      if (lies_in(top[i], bottom[0], first_[i], axis_)) continue;
      copy_from_range(ops, bottom[0], first_[i], axis_, {top[i], Write::overwrite});
    }
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    for (const CTensor& dy : args.dtop) {
      if (dy) continue;
      no_gradient(ops, dx);
      break;
    }
    for (size_t i = 0; i < args.dtop.size(); ++i) {
      const CTensor& dy = args.dtop[i];
      if (dy && !lies_in(dy, dx.t, first_[i], axis_)) copy_to_range(ops, dy, dx, first_[i], axis_);
    }
  }

 private:
  std::vector<int64_t> starts(const Shape& bottom) const {
    const auto& points = param_.slice_param().slice_point();
    const int64_t size = bottom[axis_];
    const int tops = param_.top_size();
    std::vector<int64_t> first{0};
    if (points.empty()) {
      require(size % tops == 0, "the ", size, " of axis ", axis_, " must be divisible by the ",
              tops, " tops, or slice_point given");
      for (int i = 1; i < tops; ++i) first.push_back(i * (size / tops));
      return first;
    }
    require(points.size() == tops - 1, "slice_point: ", tops, " tops need ", tops - 1,
            " points, not ", points.size());
    for (const int64_t point : points) {
      require(point > first.back() && point < size, "slice_point: ", join(points),
              " must increase within 1..", size - 1, " (axis ", axis_, " of ",
              bottom_text(param_, 0), ", shape ", bottom, ')');
      first.push_back(point);
    }
    return first;
  }

  int axis_ = 1;
  std::vector<int64_t> first_;
};

REGISTER_LAYER("Slice", SliceLayer)

}  // namespace
}  // namespace crema
