// The harness's own layers: nothing but convert and gemm, so that they can be trusted.
#include "layers/layer.h"

namespace crema {
namespace {

class CopyLayer : public Layer {
 public:
  using Layer::Layer;
  Shapes infer(const Shapes& bottom) override { return bottom; }
  LayerTraits traits() const override {
    return {.any_layout = true, .backward_reads_bottoms = 0, .backward_reads_tops = 0};
  }
  void forward(Ops& ops, CTensors bottom, Tensors top) override { ops.convert(bottom[0], top[0]); }
  void backward(Ops& ops, const BackwardArgs& args) override {
    if (args.dbottom[0]) ops.convert(args.dtop[0], args.dbottom[0].t);
  }
};

class NhwcLayer : public CopyLayer {
 public:
  using CopyLayer::CopyLayer;
  std::optional<Layout> preferred_layout(const Ops&, const Shapes&, const Shapes&) const override {
    return Layout::nhwc;
  }
};

class LossLayer : public Layer {
 public:
  using Layer::Layer;
  Shapes infer(const Shapes& bottom) override {
    params_.resize(1);
    params_[0].shape = {bottom[0].count()};
    params_[0].learnable = false;
    return {Shape()};
  }
  LayerTraits traits() const override {
    return {.backward_reads_bottoms = 0, .backward_reads_tops = 0, .accumulates = true};
  }
  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    ops.gemm(false, false, 1, matrix(bottom[0], 1), matrix(params_[0].value, bottom[0].count()),
             {top[0].data, {.shape = {1, 1}}}, Write::overwrite);
  }
  void backward(Ops& ops, const BackwardArgs& args) override {
    if (!args.dbottom[0] || !args.dtop[0]) return;
    const int64_t rows = args.bottom[0].count();
    const Tensor dx{args.dbottom[0].t.data, {.shape = {rows, 1}}};
    ops.gemm(false, false, 1, matrix(params_[0].value, rows), matrix(args.dtop[0], 1), dx,
             args.dbottom[0].how);
  }

 private:
  /// The elements as a matrix of that many rows.
  static CTensor matrix(CTensor t, int64_t rows) {
    return {t.data, {.shape = {rows, t.count() / rows}}};
  }
};

REGISTER_LAYER("HarnessCopy", CopyLayer)
REGISTER_LAYER("HarnessNhwc", NhwcLayer)
REGISTER_LAYER("HarnessLoss", LossLayer)

}  // namespace
}  // namespace crema
