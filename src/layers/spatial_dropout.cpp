// SpatialDropout (Intel's Caffe, ENet): Dropout of whole planes, the axes behind the channels.
// TRAIN: a plane is kept with probability 1 - dropout_ratio and multiplied by 1 / (1 -
// dropout_ratio); TEST: y is x.
#include "ops/kernels/spatial_dropout.h"

#include "layers/checks.h"
#include "layers/common.h"

namespace crema {
namespace {

class SpatialDropoutLayer : public Layer {
 public:
  using Layer::Layer;

  Shapes infer(const Shapes& bottom) override {
    require(ratio() >= 0 && ratio() < 1, "dropout_ratio: must be at least 0 and less than 1, not ",
            ratio());
    require(bottom[0].axes() >= 2, bottom_text(param_, 0), " of shape ", bottom[0],
            " must have at least 2 axes");
    require(fields().scale_train(), "scale_train: false is read by Dropout only");
    plane_ = bottom[0].count(2);
    key_ = random_key("spatial dropout");
    return {bottom[0]};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.can_overwrite_bottom = traits.accumulates = true;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    traits.tops_alias_bottom = phase() == TEST;
    return traits;
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    apply(ops, bottom[0], top[0], false);
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad& dx = args.dbottom[0];
    if (dx) apply(ops, args.dtop[0], dx.t, dx.how == Write::accumulate);
  }

 private:
  const DropoutParameter& fields() const {
    return param_.has_spatial_dropout_param() ? param_.spatial_dropout_param()
                                              : param_.dropout_param();
  }
  float ratio() const { return fields().dropout_ratio(); }

  void apply(Ops& ops, const CTensor& x, const Tensor& y, bool accumulate) const {
    if (phase() == TEST) {
      if (x.data == y.data) return;
      return accumulate ? ops.add(x, y) : ops.convert(x, y);
    }
    run(ops,
        SpatialDropoutMask{.x = x.f32(),
                           .y = y.f32(),
                           .key = key_,
                           .forward_count = &ops.step_scalars()->forward_count,
                           .ratio = ratio(),
                           .scale = 1 / (1 - ratio()),
                           .accumulate = accumulate,
                           .plane = Divider(plane_)},
        x.count());
  }

  int64_t plane_ = 1;
  uint64_t key_ = 0;
};

REGISTER_LAYER("SpatialDropout", SpatialDropoutLayer)

}  // namespace
}  // namespace crema
