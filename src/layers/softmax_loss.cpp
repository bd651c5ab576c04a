// SoftmaxWithLoss: p = softmax(x) along axis, loss = -sum log(max(p[label], FLT_MIN)) / divisor;
// the second top is p. class_weight w and label_smoothing s (both ours): the loss of a label is
// w[label] * ((1 - s) * -log p[label] + s / K * sum of all -log p); the divisor stays. BVLC: labels
// are not checked in release builds and are read out of bounds; here one out of range is an error
// that names the sample.
#include "ops/kernels/softmax_loss.h"

#include <cfloat>
#include <memory>

#include "layers/checks.h"
#include "layers/loss_divisor.h"

namespace crema {
namespace {

class SoftmaxWithLossLayer : public Layer {
 public:
  SoftmaxWithLossLayer(const LayerParameter& param, const LayerContext& context)
      : Layer(param, context), divisor_rule_(param.loss_param(), LossParameter::VALID) {}

  Arity arity() const override { return {2, 2, 1, 2}; }
  bool is_loss() const override { return true; }
  bool allow_force_backward(int bottom) const override { return bottom != 1; }

  Shapes infer(const Shapes& bottom) override {
    axis_ = bottom[0].canonical(param_.softmax_param().axis());
    outer_ = bottom[0].count(0, axis_);
    inner_ = bottom[0].count(axis_ + 1);
    classes_ = bottom[0][axis_];
    require_labels(param_, 1, bottom[1], outer_, inner_);
    per_sample_ = labels_per_sample(bottom[0], axis_);
    divisor_rule_.set_positions(outer_, inner_);
    has_top_ = param_.top_size() > 1;
    check_weights();
    Shapes top{Shape{}};
    if (has_top_) top.push_back(bottom[0]);
    return top;
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.accumulates = true;
    traits.backward_reads_bottoms = 2;
    traits.backward_reads_tops = has_top_ ? 2 : 0;
    return traits;
  }

  Needs plan(Ops& ops, const PlanContext& context) override {
    refuse_gradient(param_, context, 1);
    x_ = context.bottom[0];
    softmax_ = ops.plan(SoftmaxDesc{.x = x_, .axis = axis_});
    // What backward reads is saved; without a backward the same is scratch.
    parts_.clear();
    softmax_part_ = parts_.add(softmax_->needs());
    const size_t own = has_top_ ? 0 : x_.bytes();
    probability_part_ = parts_.add(context.train ? Needs{.saved = own} : Needs{.scratch = own});
    divisor_part_ = parts_.add({.saved = sizeof(float)});
    trains_ = context.train;
    if (is_weighted()) {
      std::vector<float> weights(param_.loss_param().class_weight().begin(),
                                 param_.loss_param().class_weight().end());
      weights.resize(static_cast<size_t>(classes_), 1.0F);
      weight_memory_ = ops.allocate(weights.size() * sizeof(float), Memory::device);
      ops.upload(weights.data(), {weight_memory_.get(), {.shape = Shape{classes_}}});
    }
    return parts_.total();
  }

  void bind(const Workspace& workspace) override {
    softmax_->bind(parts_.part(workspace, softmax_part_));
    divisor_ = f32_of(parts_.part(workspace, divisor_part_).saved, {});
    const Workspace own = parts_.part(workspace, probability_part_);
    probability_ = f32_of(trains_ ? own.saved : own.scratch, x_);
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    const Tensor probability = has_top_ ? top[1] : probability_;
    softmax_->forward(bottom[0], probability);
    divisor_rule_.compute(ops, bottom[1], divisor_);
    if (is_weighted()) {
      weighted_forward(ops, probability, bottom[1], top[0]);
      return;
    }
    run_rows(ops,
             LabelLogLoss{.p = probability.f32(),
                          .labels = bottom[1].f32(),
                          .divisor = divisor_.f32(),
                          .loss = top[0].f32(),
                          .fault = ops.fault(),
                          .inner = inner_,
                          .smallest = FLT_MIN,
                          .classes = static_cast<int>(classes_),
                          .layer = context_.index,
                          .ignored = divisor_rule_.ignored().value_or(0),
                          .ignores = divisor_rule_.ignored().has_value()},
             1, outer_ * inner_);
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad& dx = args.dbottom[0];
    if (!dx || clear_without_loss(ops, args)) return;
    const CTensor probability = has_top_ ? args.top[1] : CTensor(probability_);
    if (is_weighted()) {
      weighted_backward(ops, probability, args);
      return;
    }
    run(ops,
        SoftmaxLossGradient{.p = probability.f32(),
                            .labels = args.bottom[1].f32(),
                            .divisor = divisor_.f32(),
                            .dloss = args.dtop[0].f32(),
                            .dx = dx.t.f32(),
                            .inner = Divider(inner_),
                            .classes = Divider(classes_),
                            .ignored = divisor_rule_.ignored().value_or(0),
                            .ignores = divisor_rule_.ignored().has_value(),
                            .accumulate = dx.how == Write::accumulate},
        dx.t.count());
  }

  std::string explain(const Fault& fault) const override {
    return explain_label(fault, classes_, per_sample_);
  }
  int64_t sample_of(const Fault& fault) const override { return fault.index / per_sample_; }

 private:
  bool is_weighted() const {
    return param_.loss_param().class_weight_size() > 0 || smoothing() > 0;
  }
  float smoothing() const { return param_.loss_param().label_smoothing(); }
  const float* weights() const { return static_cast<const float*>(weight_memory_.get()); }

  void check_weights() const {
    require(smoothing() >= 0 && smoothing() < 1,
            "loss_param: label_smoothing must be in [0, 1), not ", smoothing());
    const auto& given = param_.loss_param().class_weight();
    require(given.empty() || given.size() == classes_, "loss_param: class_weight is given ",
            given.size(), " times, the ", classes_, " classes need one each");
    for (const float weight : given) {
      require(weight >= 0, "loss_param: class_weight must not be negative: ", weight);
    }
  }

  void weighted_forward(Ops& ops, CTensor probability, CTensor labels, Tensor loss) {
    run_rows(ops,
             WeightedLogLoss{.p = probability.f32(),
                             .labels = labels.f32(),
                             .weight = weights(),
                             .divisor = divisor_.f32(),
                             .loss = loss.f32(),
                             .fault = ops.fault(),
                             .inner = inner_,
                             .smallest = FLT_MIN,
                             .smoothing = smoothing(),
                             .classes = static_cast<int>(classes_),
                             .layer = context_.index,
                             .ignored = divisor_rule_.ignored().value_or(0),
                             .ignores = divisor_rule_.ignored().has_value()},
             1, outer_ * inner_);
  }

  void weighted_backward(Ops& ops, CTensor probability, const BackwardArgs& args) {
    const Grad& dx = args.dbottom[0];
    run(ops,
        WeightedLossGradient{.p = probability.f32(),
                             .labels = args.bottom[1].f32(),
                             .weight = weights(),
                             .divisor = divisor_.f32(),
                             .dloss = args.dtop[0].f32(),
                             .dx = dx.t.f32(),
                             .inner = Divider(inner_),
                             .classes = Divider(classes_),
                             .smoothing = smoothing(),
                             .ignored = divisor_rule_.ignored().value_or(0),
                             .ignores = divisor_rule_.ignored().has_value(),
                             .accumulate = dx.how == Write::accumulate},
        dx.t.count());
  }

  LossDivisor divisor_rule_;
  int axis_ = 1;
  int64_t outer_ = 1, inner_ = 1, classes_ = 1, per_sample_ = 1;
  bool has_top_ = false, trains_ = false;
  TensorDesc x_;
  std::unique_ptr<SoftmaxPlan> softmax_;
  WorkspaceParts parts_;
  int softmax_part_ = 0, probability_part_ = 0, divisor_part_ = 0;
  Tensor probability_, divisor_;
  Buffer weight_memory_;
};

REGISTER_LAYER("SoftmaxWithLoss", SoftmaxWithLossLayer)

}  // namespace
}  // namespace crema
