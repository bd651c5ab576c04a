// Concat: the bottoms one after another along axis (or the older concat_dim).
#include "layers/axis_view.h"
#include "layers/checks.h"

namespace crema {
namespace {

class ConcatLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {1, -1, 1, 1}; }

  Shapes infer(const Shapes& bottom) override {
    const ConcatParameter& p = param_.concat_param();
    require(!p.has_axis() || !p.has_concat_dim(), "axis and concat_dim exclude each other");
    const int wanted = p.has_concat_dim() ? static_cast<int>(p.concat_dim()) : p.axis();
    axis_ = bottom[0].canonical(wanted);
    Shape top = bottom[0];
    for (size_t i = 1; i < bottom.size(); ++i) {
      Shape others = bottom[i];
      if (others.axes() == top.axes()) others[axis_] = bottom[0][axis_];
      require(others == bottom[0], bottom_text(param_, static_cast<int>(i)), " of shape ",
              bottom[i], " must be like ", bottom_text(param_, 0), ", ", bottom[0],
              ", on all axes but axis ", axis_);
      top[axis_] += bottom[i][axis_];
    }
    require_countable("top", top);
    return {top};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.accumulates = true;
    traits.tops_alias_bottom = param_.bottom_size() == 1;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    traits.pieces = Pieces::bottoms;
    traits.pieces_axis = axis_;
    traits.low = Low::follows;
    return traits;
  }

  bool takes_low(const Ops& ops, const PlanContext& context) const override {
    return ops.computes(Family::elements, context.top[0].dtype);
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    int64_t first = 0;
    for (const CTensor& x : bottom) {
      if (!lies_in(x, top[0], first, axis_)) {
        copy_to_range(ops, x, {top[0], Write::overwrite}, first, axis_);
      }
      first += x.shape()[axis_];
    }
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    int64_t first = 0;
    for (size_t i = 0; i < args.bottom.size(); ++i) {
      const Grad& dx = args.dbottom[i];
      if (dx && !lies_in(dx.t, args.dtop[0], first, axis_)) {
        copy_from_range(ops, args.dtop[0], first, axis_, dx);
      }
      first += args.bottom[i].shape()[axis_];
    }
  }

 private:
  int axis_ = 1;
};

REGISTER_LAYER("Concat", ConcatLayer)

}  // namespace
}  // namespace crema
