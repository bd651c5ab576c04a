// Layers that are one formula per element, y = f(x): each is a function that turns its fields into
// that formula. BVLC: all are right in place (BNLL, Clip, AbsVal and Power are not in Caffe).
#include <cmath>

#include "layers/common.h"
#include "layers/two_forms.h"
#include "ops/kernels/scaled_elu.h"

namespace crema {
namespace {

/// f, and whether its gradient is taken from x or from y.
struct Formula {
  Unary unary;
  UnaryArgs args;
  bool reads_x = false, reads_y = false;
  ActKind act = ActKind::none;  // where it is an activation that a plan can apply
  bool has_backward = true;
};

template <Formula (*formula)(const LayerParameter&)>
class NeuronLayer : public Layer {
 public:
  using Layer::Layer;

  Shapes infer(const Shapes& bottom) override {
    formula_ = formula(param_);
    return {bottom[0]};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.can_overwrite_bottom = traits.accumulates = true;
    traits.backward_reads_bottoms = formula_.reads_x ? 1 : 0;
    traits.backward_reads_tops = formula_.reads_y ? 1 : 0;
    traits.has_backward = formula_.has_backward;
    traits.low = Low::follows;
    return traits;
  }

  bool takes_low(const Ops& ops, const PlanContext& context) const override {
    return ops.computes(Family::unary, context.top[0].dtype);
  }

  std::optional<Act> as_activation() const override {
    if (formula_.act == ActKind::none || formula_.args.a < 0) return std::nullopt;
    return Act{formula_.act, formula_.args.a};
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    ops.unary(formula_.unary, formula_.args, bottom[0], top[0]);
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    if (!args.dbottom[0]) return;
    const CTensor x = formula_.reads_x ? args.bottom[0] : CTensor();
    const CTensor y = formula_.reads_y ? args.top[0] : CTensor();
    ops.unary_backward(formula_.unary, formula_.args, x, y, args.dtop[0], args.dbottom[0]);
  }

 private:
  Formula formula_{};
};

/// ln(base), 1 for the base -1 that stands for e.
float log_of_base(float base) {
  if (base == -1) return 1;
  require(base > 0, "base: must be above 0, or -1 for e, not ", base);
  return std::log(base);
}

/// max(x, 0) + negative_slope * min(x, 0)
Formula relu(const LayerParameter& param) {
  const float slope = param.relu_param().negative_slope();
  return {Unary::relu, {.a = slope}, slope < 0, slope >= 0, ActKind::relu};
}

/// min(max(x, 0), 6)
Formula relu6(const LayerParameter&) { return {Unary::relu6, {}, false, true, ActKind::relu6}; }

/// x > 0 ? x : alpha * (e^x - 1)
Formula elu(const LayerParameter& param) {
  const float alpha = param.elu_param().alpha();
  return {Unary::elu, {.a = alpha}, alpha < 0, true, ActKind::elu};
}

/// lambda * (x > 0 ? x : alpha * (e^x - 1)): NVCaffe's lambda; SELU (Klambauer et al. 2017) with
/// lambda 1.0507 and alpha 1.67326.
class ScaledEluLayer : public Layer {
 public:
  using Layer::Layer;

  Shapes infer(const Shapes& bottom) override { return {bottom[0]}; }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.can_overwrite_bottom = traits.accumulates = true;
    traits.backward_reads_tops = 0;
    return traits;
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    const ELUParameter& p = param_.elu_param();
    run(ops, ScaledElu{bottom[0].f32(), top[0].f32(), p.alpha(), p.lambda()}, top[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    const ELUParameter& p = param_.elu_param();
    run(ops,
        ScaledEluBackward{args.bottom[0].f32(), args.dtop[0].f32(), dx.t.f32(), p.alpha(),
                          p.lambda(), dx.how == Write::accumulate},
        args.bottom[0].count());
  }
};

Formula sigmoid(const LayerParameter&) { return {Unary::sigmoid, {}, false, true}; }
Formula tanh(const LayerParameter&) { return {Unary::tanh, {}, false, true}; }
Formula absval(const LayerParameter&) { return {Unary::absval, {}, true}; }
/// ln(1 + e^x)
Formula bnll(const LayerParameter&) { return {Unary::bnll, {}, true}; }
/// x * sigmoid(beta * x)
Formula swish(const LayerParameter& param) {
  return {Unary::swish, {.a = param.swish_param().beta()}, true};
}

/// (shift + scale * x)^power
Formula power(const LayerParameter& param) {
  const PowerParameter& p = param.power_param();
  return {Unary::power, {.a = p.scale(), .b = p.shift(), .c = p.power()}, true};
}

/// base^(shift + scale * x)
Formula exp(const LayerParameter& param) {
  const ExpParameter& p = param.exp_param();
  const float log_base = log_of_base(p.base());
  return {Unary::exp, {.a = p.scale() * log_base, .b = p.shift() * log_base}, true, true};
}

/// log(shift + scale * x) to the base
Formula log(const LayerParameter& param) {
  const LogParameter& p = param.log_param();
  require(p.base() != 1, "base: there is no logarithm to the base 1");
  return {Unary::log, {.a = p.scale(), .b = p.shift(), .c = 1 / log_of_base(p.base())}, true};
}

/// min(max(x, min), max)
Formula clip(const LayerParameter& param) {
  const ClipParameter& p = param.clip_param();
  require(p.has_min() && p.has_max(), "clip_param: min and max are missing");
  require(p.min() <= p.max(), "min: ", p.min(), " is above max ", p.max());
  return {Unary::clip, {.a = p.min(), .b = p.max()}, true};
}

/// x > threshold ? 1 : 0
Formula threshold(const LayerParameter& param) {
  return {Unary::threshold,
          {.a = param.threshold_param().threshold()},
          false,
          false,
          ActKind::none,
          false};
}

using ReluLayer = NeuronLayer<relu>;
using Relu6Layer = NeuronLayer<relu6>;
using EluLayer = NeuronLayer<elu>;
using SigmoidLayer = NeuronLayer<sigmoid>;
using TanhLayer = NeuronLayer<crema::tanh>;
using AbsValLayer = NeuronLayer<absval>;
using BnllLayer = NeuronLayer<bnll>;
using SwishLayer = NeuronLayer<swish>;
using PowerLayer = NeuronLayer<power>;
using ExpLayer = NeuronLayer<crema::exp>;
using LogLayer = NeuronLayer<crema::log>;
using ClipLayer = NeuronLayer<clip>;
using ThresholdLayer = NeuronLayer<threshold>;

REGISTER_LAYER("ReLU", ReluLayer)
REGISTER_LAYER("ReLU6", Relu6Layer)
const TwoFormsRegistrar<ScaledEluLayer, EluLayer> elu_registrar(
    "ELU", [](const LayerParameter& param) { return param.elu_param().lambda() != 1; });
REGISTER_LAYER("Sigmoid", SigmoidLayer)
REGISTER_LAYER("TanH", TanhLayer)
REGISTER_LAYER("AbsVal", AbsValLayer)
REGISTER_LAYER("BNLL", BnllLayer)
REGISTER_LAYER("Swish", SwishLayer)
REGISTER_LAYER("Power", PowerLayer)
REGISTER_LAYER("Exp", ExpLayer)
REGISTER_LAYER("Log", LogLayer)
REGISTER_LAYER("Clip", ClipLayer)
REGISTER_LAYER("Threshold", ThresholdLayer)

}  // namespace
}  // namespace crema
