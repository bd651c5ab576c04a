// InfogainLoss: p = softmax(x) along axis, loss = -sum over k of H[label][k] log(max(p_k, 1e-20))
// over the divisor; H is the third bottom or a file. The identity gives SoftmaxWithLoss.
#include "ops/kernels/infogain_loss.h"

#include <memory>

#include "io/mean.h"
#include "layers/checks.h"
#include "layers/loss_divisor.h"

namespace crema {
namespace {

class InfogainLossLayer : public Layer {
 public:
  InfogainLossLayer(const LayerParameter& param, const LayerContext& context)
      : Layer(param, context), divisor_rule_(param.loss_param(), LossParameter::VALID) {}

  Arity arity() const override { return {2, 3, 1, 2}; }
  bool is_loss() const override { return true; }
  bool allow_force_backward(int bottom) const override { return bottom == 0; }

  Shapes infer(const Shapes& bottom) override {
    require(!param_.loss_param().has_normalize(),
            "loss_param: normalize is not read by InfogainLoss; use normalization");
    axis_ = bottom[0].canonical(param_.infogain_loss_param().axis());
    outer_ = bottom[0].count(0, axis_);
    inner_ = bottom[0].count(axis_ + 1);
    classes_ = bottom[0][axis_];
    require_labels(param_, 1, bottom[1], outer_, inner_);
    per_sample_ = labels_per_sample(bottom[0], axis_);
    divisor_rule_.set_positions(outer_, inner_);
    check_matrix(bottom);
    Shapes top{Shape{}};
    if (param_.top_size() > 1) top.push_back(bottom[0]);
    return top;
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.accumulates = true;
    traits.backward_reads_bottoms = 6;
    traits.backward_reads_tops = 0;
    return traits;
  }

  Needs plan(Ops& ops, const PlanContext& context) override {
    refuse_gradient(param_, context, 1);
    refuse_gradient(param_, context, 2);
    x_ = context.bottom[0];
    softmax_ = ops.plan(SoftmaxDesc{.x = x_, .axis = axis_});
    if (!matrix_.empty()) {
      matrix_memory_ = ops.allocate(matrix_.size() * sizeof(float), Memory::device);
      ops.upload(matrix_.data(), {matrix_memory_.get(), {.shape = Shape{classes_, classes_}}});
    }
    parts_.clear();
    softmax_part_ = parts_.add(softmax_->needs());
    probability_part_ = parts_.add({.saved = x_.bytes()});
    totals_part_ = parts_.add({.saved = static_cast<size_t>(classes_) * sizeof(float)});
    divisor_part_ = parts_.add({.saved = sizeof(float)});
    return parts_.total();
  }

  void bind(const Workspace& workspace) override {
    softmax_->bind(parts_.part(workspace, softmax_part_));
    probability_ = f32_of(parts_.part(workspace, probability_part_).saved, x_);
    totals_ = f32_of(parts_.part(workspace, totals_part_).saved, {.shape = Shape{classes_}});
    divisor_ = f32_of(parts_.part(workspace, divisor_part_).saved, {});
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    softmax_->forward(bottom[0], probability_);
    if (top.size() > 1) ops.convert(probability_, top[1]);
    divisor_rule_.compute(ops, bottom[1], divisor_);
    run_rows(ops, InfogainRows{matrix(bottom), totals_.f32(), classes_}, classes_, classes_);
    run_rows(ops,
             InfogainLoss{.p = probability_.f32(),
                          .labels = bottom[1].f32(),
                          .h = matrix(bottom),
                          .divisor = divisor_.f32(),
                          .loss = top[0].f32(),
                          .fault = ops.fault(),
                          .inner = inner_,
                          .classes = static_cast<int>(classes_),
                          .layer = context_.index,
                          .ignored = divisor_rule_.ignored().value_or(0),
                          .ignores = divisor_rule_.ignored().has_value()},
             1, outer_ * inner_);
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad& dx = args.dbottom[0];
    if (!dx || clear_without_loss(ops, args)) return;
    run(ops,
        InfogainGradient{.p = probability_.f32(),
                         .labels = args.bottom[1].f32(),
                         .h = matrix(args.bottom),
                         .total = totals_.f32(),
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
  const float* matrix(CTensors bottom) const {
    return bottom.size() > 2 ? bottom[2].f32() : static_cast<const float*>(matrix_memory_.get());
  }

  void check_matrix(const Shapes& bottom) {
    const std::string& source = param_.infogain_loss_param().source();
    if (bottom.size() > 2) {
      require(bottom[2].count() == classes_ * classes_, bottom_text(param_, 2), " of shape ",
              bottom[2], " must hold the ", classes_, " x ", classes_,
              " values of the information gain matrix");
      return;
    }
    require(!source.empty(), "needs the information gain matrix, as source or as a third bottom");
    if (matrix_.empty()) matrix_ = read_mean(source).data;
    require(static_cast<int64_t>(matrix_.size()) == classes_ * classes_, "source: ", source,
            " holds ", matrix_.size(), " values, the information gain matrix of ", classes_,
            " classes has ", classes_ * classes_);
  }

  LossDivisor divisor_rule_;
  int axis_ = 1;
  int64_t outer_ = 1, inner_ = 1, classes_ = 1, per_sample_ = 1;
  std::vector<float> matrix_;
  Buffer matrix_memory_;
  TensorDesc x_;
  std::unique_ptr<SoftmaxPlan> softmax_;
  WorkspaceParts parts_;
  int softmax_part_ = 0, probability_part_ = 0, totals_part_ = 0, divisor_part_ = 0;
  Tensor probability_, totals_, divisor_;
};

REGISTER_LAYER("InfogainLoss", InfogainLossLayer)

}  // namespace
}  // namespace crema
