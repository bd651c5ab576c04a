// AnnotatedData (SSD): pictures [N, C, H, W] and their boxes [1, 1, G, 8]: number in the batch,
// class, instance, corners as fractions of the picture, difficult. BVLC: G is fixed, rows of -1
// fill it up.
#include "layers/feed_layer.h"

namespace crema {
namespace {

class AnnotatedDataLayer : public FeedLayer {
 public:
  AnnotatedDataLayer(const LayerParameter& param, const LayerContext& context)
      : FeedLayer(param, context, {0, 0, 1, 2}) {}

  Shapes infer(const Shapes& bottom) override {
    Shapes tops = FeedLayer::infer(bottom);
    if (tops.size() < 2) return tops;
    per_record_ = tops[1].count(1);
    row_ = tops[1][2];
    tops[1] = Shape{1, 1, tops[1][0] * tops[1][1], row_};
    return tops;
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    FeedLayer::forward(ops, bottom, top);
    if (top.size() < 2) return;
    float* row = top[1].f32();
    for (int64_t i = 0; i < top[1].count(); i += row_, row += row_) {
      if (row[0] >= 0) row[0] = static_cast<float>(i / per_record_);
    }
  }

 private:
  int64_t per_record_ = 1, row_ = 1;
};

REGISTER_LAYER("AnnotatedData", AnnotatedDataLayer)

}  // namespace
}  // namespace crema
