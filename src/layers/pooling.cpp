// y = maximum, average or a random element of each window; sizes round up unless round_mode is
// FLOOR. BVLC: one to three spatial axes (Caffe: two), and STOCHASTIC runs on a CPU too.
#include "layers/checks.h"
#include "layers/pool_shape.h"

namespace crema {
namespace {

class PoolingLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override {
    return {1, 1, 1, param_.pooling_param().pool() == PoolingParameter::MAX ? 2 : 1};
  }

  Shapes infer(const Shapes& bottom) override {
    const PoolingParameter& p = param_.pooling_param();
    require(3 <= bottom[0].axes() && bottom[0].axes() <= 5, bottom_text(param_, 0), " of shape ",
            bottom[0], " must have batch, channels and 1 to 3 spatial axes");
    shape_ = read_pool_shape(p, bottom[0]);
    Shape top = bottom[0].slice(0, 2);
    for (int i = 0; i < shape_.out.axes; ++i) top.push_back(shape_.out[i]);
    return Shapes(static_cast<size_t>(has_mask() ? 2 : 1), top);
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.accumulates = true;
    const bool is_average = kind() == PoolKind::average;
    traits.backward_reads_bottoms = is_average ? 0 : 1;
    traits.backward_reads_tops = is_average ? 0 : 1;
    // BVLC: no gradient flows through STOCHASTIC in TEST, where the output is an average (Caffe
    // reads stale indices).
    traits.has_backward = kind() != PoolKind::stochastic || phase() == TRAIN;
    // Positions do not fit into 16 bits.
    if (!has_mask() && kind() != PoolKind::stochastic) traits.low = Low::follows;
    return traits;
  }

  bool takes_low(const Ops& ops, const PlanContext& context) const override {
    return ops.computes(Family::pool, context.top[0].dtype);
  }

  Needs plan(Ops& ops, const PlanContext& context) override {
    PoolDesc desc{.x = context.bottom[0],
                  .y = context.top[0],
                  .kind = kind(),
                  .kernel = shape_.kernel,
                  .stride = shape_.stride,
                  .pad = shape_.pad,
                  .mask = has_mask(),
                  .train = context.train};
    if (kind() == PoolKind::stochastic) {
      desc.train = phase() == TRAIN;
      desc.seed = random_key("pooling");
    }
    plan_ = ops.plan(desc);
    return plan_->needs();
  }

  void bind(const Workspace& workspace) override { plan_->bind(workspace); }

  void forward(Ops&, CTensors bottom, Tensors top) override {
    plan_->forward(bottom[0], top[0], has_mask() ? top[1] : Tensor());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    if (!args.dbottom[0]) return;
    if (!args.dtop[0]) return no_gradient(ops, args.dbottom[0]);
    plan_->backward(args.bottom[0], args.top[0], args.dtop[0], args.dbottom[0]);
  }

 private:
  bool has_mask() const { return param_.top_size() == 2; }
  PoolKind kind() const { return pool_kind(param_.pooling_param().pool()); }

  PoolShape shape_;
  std::unique_ptr<PoolPlan> plan_;
};

REGISTER_LAYER("Pooling", PoolingLayer)

}  // namespace
}  // namespace crema
