// TRAIN: y = x / (1 - dropout_ratio) with probability 1 - dropout_ratio, else 0; the mask is drawn
// again in backward. TEST: y is x. With scale_train false (Fast R-CNN's) the factor stands in TEST:
// there y = (1 - dropout_ratio) x, and x is kept as it is in TRAIN.
#include "ops/kernels/dropout.h"

#include "layers/checks.h"
#include "layers/common.h"

namespace crema {
namespace {

class DropoutLayer : public Layer {
 public:
  using Layer::Layer;

  Shapes infer(const Shapes& bottom) override {
    const float ratio = param_.dropout_param().dropout_ratio();
    require(ratio >= 0 && ratio < 1, "dropout_ratio: must be at least 0 and less than 1, not ",
            ratio);
    key_ = random_key("dropout");
    return {bottom[0]};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.can_overwrite_bottom = traits.accumulates = true;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    traits.tops_alias_bottom = phase() == TEST && scales_in_train();
    traits.low = Low::follows;
    return traits;
  }

  bool takes_low(const Ops& ops, const PlanContext& context) const override {
    return ops.computes(Family::elements, context.top[0].dtype);
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    apply(ops, bottom[0], top[0], false);
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    if (args.dbottom[0])
      apply(ops, args.dtop[0], args.dbottom[0].t, args.dbottom[0].how == Write::accumulate);
  }

 private:
  bool scales_in_train() const { return param_.dropout_param().scale_train(); }

  void apply(Ops& ops, const CTensor& x, const Tensor& y, bool accumulate) const {
    if (phase() == TEST && scales_in_train()) {
      if (x.data == y.data) return;
      return accumulate ? ops.add(x, y) : ops.convert(x, y);
    }
    switch (x.desc.dtype) {
      case DType::bf16:
        return run_mask<DropoutMaskBf16, Bf16>(ops, x, y, accumulate);
      case DType::f16:
        return run_mask<DropoutMaskF16, F16>(ops, x, y, accumulate);
      default:
        return run_mask<DropoutMask, float>(ops, x, y, accumulate);
    }
  }

  template <class Mask, class T>
  void run_mask(Ops& ops, const CTensor& x, const Tensor& y, bool accumulate) const {
    const float ratio = param_.dropout_param().dropout_ratio();
    const float in_train = scales_in_train() ? 1 / (1 - ratio) : 1;
    const bool is_nhwc = x.desc.layout == Layout::nhwc;
    const Shape& shape = x.desc.shape;
    const int64_t plane = is_nhwc ? shape.count(2) : 1, runs = DropoutOf<T>::runs_of(plane);
    run(ops,
        Mask{{.x = static_cast<const T*>(x.data),
              .y = static_cast<T*>(y.data),
              .n = x.count(),
              .key = key_,
              .forward_count = &ops.step_scalars()->forward_count,
              .ratio = phase() == TEST ? 0 : ratio,  // nothing is dropped
              .scale = phase() == TEST ? 1 - ratio : in_train,
              .accumulate = accumulate,
              .is_nhwc = is_nhwc,
              .channels = Divider(is_nhwc ? shape[1] : 1),
              .runs = Divider(runs),
              .plane = plane}},
        is_nhwc ? shape[0] * runs * shape[1] : (x.count() + 3) / 4);
  }

  uint64_t key_ = 0;
};

REGISTER_LAYER("Dropout", DropoutLayer)

}  // namespace
}  // namespace crema
