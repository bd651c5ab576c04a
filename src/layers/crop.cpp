// y: bottom 0 cut to the sizes of bottom 1 along the axes from `axis` on, starting at `offset`.
// Bottom 1 gives its shape only and gets no gradient.
#include "ops/kernels/crop.h"

#include <algorithm>

#include "layers/checks.h"
#include "layers/common.h"

namespace crema {
namespace {

class CropLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, 2, 1, 1}; }
  bool allow_force_backward(int bottom) const override { return bottom == 0; }

  Shapes infer(const Shapes& bottom) override {
    const CropParameter& p = param_.crop_param();
    const Shape& whole = bottom[0];
    require(-whole.axes() <= p.axis() && p.axis() < whole.axes(), "axis: ", p.axis(),
            " does not exist in ", bottom_text(param_, 0), " of shape ", whole);
    const int axis = whole.canonical(p.axis());
    require(bottom[1].axes() == whole.axes(), bottom_text(param_, 1), " of shape ", bottom[1],
            " must have as many axes as ", bottom_text(param_, 0), " of shape ", whole);
    const int cropped = whole.axes() - axis;
    require(p.offset_size() <= 1 || p.offset_size() == cropped, "offset: ", p.offset_size(),
            " values, but 1 or ", cropped, " (one for each axis from ", axis, " on) are possible");
    Shape top = whole.slice(0, axis);
    start_ = {};
    for (int i = 0; i < axis; ++i) start_.push_back(0);
    for (int i = axis; i < whole.axes(); ++i) {
      const int64_t offset =
          p.offset_size() == 0 ? 0 : p.offset(p.offset_size() == 1 ? 0 : i - axis);
      require(offset + bottom[1][i] <= whole[i], "offset: ", offset, " and the ", bottom[1][i],
              " of ", bottom_text(param_, 1), " reach beyond the ", whole[i], " of ",
              bottom_text(param_, 0), " along axis ", i);
      start_.push_back(offset);
      top.push_back(bottom[1][i]);
    }
    return {top};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.accumulates = true;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    return traits;
  }

  Needs plan(Ops&, const PlanContext& context) override {
    block_ = block_of(context.bottom[0], context.top[0].shape);
    return {};
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    run(ops, CropForward{bottom[0].f32(), top[0].f32(), block_}, top[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    no_gradient(ops, args.dbottom[1]);
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    no_gradient(ops, dx);
    run(ops, CropBackward{args.dtop[0].f32(), dx.t.f32(), block_}, args.dtop[0].count());
  }

 private:
  /// The axes in the order they have in memory, whole ones joined to the one outside them.
  CropBlock block_of(const TensorDesc& whole, const Shape& top) const {
    std::vector<int> order;
    for (int i = 0; i < top.axes(); ++i) order.push_back(i);
    if (whole.layout == Layout::nhwc)
      std::rotate(order.begin() + 1, order.begin() + 2, order.end());
    CropBlock block{};
    int64_t step = 1;
    for (size_t i = order.size(); i-- > 0; step *= whole.shape[order[i]]) {
      block.start += start_[order[i]] * step;
      push_front(block, top[order[i]], step);
    }
    return block;
  }

  static void push_front(CropBlock& block, int64_t size, int64_t step) {
    if (block.axes > 0 && block.step[0] * block.size[0] == step) {
      block.size[0] *= size;
      return;
    }
    require(block.axes < 8, "axis: more than 8 axes are cropped");
    for (int i = block.axes; i > 0; --i) {
      block.size[i] = block.size[i - 1];
      block.step[i] = block.step[i - 1];
    }
    block.size[0] = size;
    block.step[0] = step;
    ++block.axes;
  }

  Shape start_;  // of the block in bottom 0
  CropBlock block_{};
};

REGISTER_LAYER("Crop", CropLayer)

}  // namespace
}  // namespace crema
