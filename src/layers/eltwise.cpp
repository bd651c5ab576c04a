// Eltwise: y = sum of coeff_k * x_k, product of x_k, or maximum of x_k, element by element.
// The gradient of a product is that of the other factors (stable_prod_grad) or y / x; that of a
// maximum goes to the winner alone.
#include "ops/kernels/eltwise.h"

#include "layers/checks.h"

namespace crema {
namespace {

class EltwiseLayer : public Layer {
 public:
  using Layer::Layer;
  // BVLC: at least two bottoms; FlowNet scales one blob with it.
  Arity arity() const override { return {1, kMaxEltwise, 1, 1}; }

  Shapes infer(const Shapes& bottom) override {
    const EltwiseParameter& p = param_.eltwise_param();
    require(p.coeff_size() == 0 || p.coeff_size() == static_cast<int>(bottom.size()),
            "coeff: give none or one per bottom (", bottom.size(), "), not ", p.coeff_size());
    require(p.coeff_size() == 0 || operation() != EltwiseParameter::PROD,
            "coeff: has no meaning for operation PROD");
    for (size_t i = 1; i < bottom.size(); ++i) {
      require(bottom[i] == bottom[0], bottom_text(param_, static_cast<int>(i)), " of shape ",
              bottom[i], " must have the shape of ", bottom_text(param_, 0), ", ", bottom[0]);
    }
    return {bottom[0]};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.can_overwrite_bottom = traits.accumulates = true;
    const bool product = operation() == EltwiseParameter::PROD;
    const bool reads_top = product ? !stable() : act_.kind != ActKind::none;
    traits.backward_reads_bottoms = product ? ~uint64_t{0} : 0;
    traits.backward_reads_tops = reads_top ? 1 : 0;
    if (operation() == EltwiseParameter::SUM) traits.low = Low::follows;
    return traits;
  }

  bool takes_low(const Ops& ops, const PlanContext& context) const override {
    return ops.computes(Family::elements, context.top[0].dtype);
  }

  bool is_sum() const override {
    return operation() == EltwiseParameter::SUM && param_.bottom_size() == 2 && coeff(0) == 1 &&
           coeff(1) == 1 && act_.kind == ActKind::none;
  }

  bool absorb(const Act& act) override {
    if (operation() != EltwiseParameter::SUM || act.kind != ActKind::relu || act.slope < 0) {
      return false;
    }
    act_ = act;
    return true;
  }

  Needs plan(Ops&, const PlanContext& context) override {
    keeps_winner_ = context.train && operation() == EltwiseParameter::MAX;
    return {.saved = keeps_winner_ ? static_cast<size_t>(context.top[0].count()) : 0};
  }

  void bind(const Workspace& workspace) override { winner_ = workspace.saved; }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    switch (operation()) {
      case EltwiseParameter::SUM:
        sum(ops, bottom, top[0]);
        break;
      case EltwiseParameter::PROD:
        run(ops, product_of(bottom, top[0].f32()), top[0].count());
        break;
      case EltwiseParameter::MAX:
        maximum(ops, bottom, top[0]);
        break;
    }
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    // In order, for the same blob may stand twice, the second time to be added to; but bottom 0
    // last where its gradient lies in the top's.
    const bool shares = args.dbottom[0] && args.dbottom[0].t.data == args.dtop[0].data;
    for (size_t i = shares ? 1 : 0; i < args.dbottom.size(); ++i) {
      if (args.dbottom[i]) backward_to(ops, args, i);
    }
    if (shares) backward_to(ops, args, 0);
  }

 private:
  /// The maximum of one blob is its sum.
  EltwiseParameter::EltwiseOp operation() const {
    const EltwiseParameter::EltwiseOp written = param_.eltwise_param().operation();
    const bool is_alone = param_.bottom_size() == 1 && written == EltwiseParameter::MAX;
    return is_alone ? EltwiseParameter::SUM : written;
  }
  bool stable() const { return param_.eltwise_param().stable_prod_grad(); }
  float coeff(size_t i) const {
    const auto& all = param_.eltwise_param().coeff();
    const bool is_sum = param_.eltwise_param().operation() == EltwiseParameter::SUM;
    return all.empty() || !is_sum ? 1.0f : all.Get(static_cast<int>(i));
  }

  void sum(Ops& ops, CTensors bottom, const Tensor& y) const {
    if (bottom.size() == 1) {  // twice the half, which is exact
      const float half = coeff(0) / 2;
      return weighted_sum(ops, bottom[0], bottom[0], y, {.a = half, .b = half}, act_);
    }
    for (size_t i = 1; i < bottom.size(); ++i) {
      const bool last = i + 1 == bottom.size();
      weighted_sum(ops, i == 1 ? bottom[0] : CTensor(y), bottom[i], y,
                   {.a = i == 1 ? coeff(0) : 1.0f, .b = coeff(i)}, last ? act_ : Act());
    }
  }

  static ProductOf product_of(CTensors bottom, float* y) {
    ProductOf product{};
    for (size_t i = 0; i < bottom.size(); ++i) product.x[i] = bottom[i].f32();
    product.y = y;
    product.count = static_cast<int>(bottom.size());
    product.skip = -1;
    return product;
  }

  void maximum(Ops& ops, CTensors bottom, const Tensor& y) const {
    MaxOf maximum{};
    for (size_t i = 0; i < bottom.size(); ++i) maximum.x[i] = bottom[i].f32();
    maximum.y = y.f32();
    maximum.winner = keeps_winner_ ? static_cast<uint8_t*>(winner_.data) : nullptr;
    maximum.count = static_cast<int>(bottom.size());
    run(ops, maximum, y.count());
  }

  void backward_to(Ops& ops, const BackwardArgs& args, size_t i) const {
    const CTensor& dy = args.dtop[0];
    const Tensor& dx = args.dbottom[i].t;
    const bool accumulate = args.dbottom[i].how == Write::accumulate;
    switch (operation()) {
      case EltwiseParameter::SUM:
        return gradient_of_sum(ops, args, i);
      case EltwiseParameter::MAX:
        return run(ops,
                   MaxGradient{static_cast<const uint8_t*>(winner_.data), dy.f32(), dx.f32(),
                               static_cast<int>(i), accumulate},
                   dx.count());
      case EltwiseParameter::PROD:
        break;
    }
    if (!stable()) {
      const RatioGradient ratio{args.bottom[i].f32(), args.top[0].f32(), dy.f32(), dx.f32(),
                                accumulate};
      return run(ops, ratio, dx.count());
    }
    ProductOf others = product_of(args.bottom, dx.f32());
    others.factor = dy.f32();
    others.skip = static_cast<int>(i);
    others.accumulate = accumulate;
    run(ops, others, dx.count());
  }

  void gradient_of_sum(Ops& ops, const BackwardArgs& args, size_t i) const {
    const Tensor& dx = args.dbottom[i].t;
    if (dx.data == args.dtop[0].data && coeff(i) == 1 && act_.kind != ActKind::relu) return;
    switch (dx.desc.dtype) {
      case DType::bf16:
        return run_gradient<WeightedGradientBf16, Bf16>(ops, args, i);
      case DType::f16:
        return run_gradient<WeightedGradientF16, F16>(ops, args, i);
      default:
        return run_gradient<WeightedGradient, float>(ops, args, i);
    }
  }

  template <class Gradient, class T>
  void run_gradient(Ops& ops, const BackwardArgs& args, size_t i) const {
    const bool relu = act_.kind == ActKind::relu;
    const Tensor& dx = args.dbottom[i].t;
    const CTensor& mask = relu ? args.top[0] : args.dtop[0];
    run(ops,
        Gradient{{.dy = static_cast<const T*>(args.dtop[0].data),
                  .y = static_cast<const T*>(mask.data),
                  .dx = static_cast<T*>(dx.data),
                  .c = coeff(i),
                  .slope = act_.slope,
                  .relu = relu,
                  .accumulate = args.dbottom[i].how == Write::accumulate}},
        dx.count());
  }

  Act act_;
  bool keeps_winner_ = false;
  Tensor winner_;
};

REGISTER_LAYER("Eltwise", EltwiseLayer)

}  // namespace
}  // namespace crema
