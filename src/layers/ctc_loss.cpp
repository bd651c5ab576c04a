// CTCLoss (Graves et al. 2006): the mean over N of -log p(labels | softmax(x)). Bottoms: x [T, N,
// C], indicators [T, N] (0 begins a sequence, as for LSTM), labels [L, N], ended by a negative one.
// The blank is class blank_index, -1: the last. BVLC: labels that do not fit into the steps are an
// error.
#include "layers/checks.h"
#include "layers/common.h"
#include "ops/kernels/ctc.h"

namespace crema {
namespace {

class CtcLossLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {3, 3, 1, 1}; }
  bool is_loss() const override { return true; }
  bool allow_force_backward(int bottom) const override { return bottom == 0; }

  Shapes infer(const Shapes& bottom) override {
    const CTCLossParameter& p = param_.ctc_loss_param();
    const Shape& x = bottom[0];
    require(x.axes() == 3, bottom_text(param_, 0), " of shape ", x,
            " must have three axes: steps, sequences, classes");
    require(bottom[1].count() == x[0] * x[1], bottom_text(param_, 1), " of shape ", bottom[1],
            " must hold an indicator for each of ", x[0], " x ", x[1], " steps");
    require(bottom[2].axes() >= 2 && bottom[2].count() == bottom[2][0] * x[1],
            bottom_text(param_, 2), " of shape ", bottom[2], " must be labels [L, ", x[1], ']');
    require(p.blank_index() >= -1 && p.blank_index() < x[2], "blank_index: ", p.blank_index(),
            " must be in 0..", x[2] - 1, ", or -1 for the last class");
    require(p.output_delay() == 0 && p.ctc_merge_repeated(),
            "output_delay and ctc_merge_repeated: only their defaults, 0 and true, are supported");
    x_ = x;
    most_labels_ = bottom[2][0];
    return {Shape{}};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.accumulates = true;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    return traits;
  }

  Needs plan(Ops& ops, const PlanContext& context) override {
    refuse_gradient(param_, context, 1);
    refuse_gradient(param_, context, 2);
    softmax_ = ops.plan(SoftmaxDesc{.x = {.shape = x_}, .axis = 2});
    const size_t values = static_cast<size_t>(x_.count()) * sizeof(float);
    const size_t paths =
        static_cast<size_t>(x_[1] * x_[0] * (2 * most_labels_ + 1)) * sizeof(float);
    parts_.clear();
    softmax_part_ = parts_.add(softmax_->needs());
    probabilities_part_ = parts_.add({.scratch = values});
    alpha_part_ = parts_.add({.scratch = paths});
    beta_part_ = parts_.add({.scratch = paths});
    losses_part_ = parts_.add({.scratch = static_cast<size_t>(x_[1]) * sizeof(float)});
    gradient_part_ = parts_.add({.saved = values});
    return parts_.total();
  }

  void bind(const Workspace& workspace) override {
    softmax_->bind(parts_.part(workspace, softmax_part_));
    const auto scratch = [&](int part) {
      return static_cast<float*>(parts_.part(workspace, part).scratch.data);
    };
    probabilities_ = {scratch(probabilities_part_), {.shape = x_}};
    alpha_ = scratch(alpha_part_);
    beta_ = scratch(beta_part_);
    losses_ = scratch(losses_part_);
    gradient_ = static_cast<float*>(parts_.part(workspace, gradient_part_).saved.data);
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    softmax_->forward(bottom[0], probabilities_);
    run(ops,
        CtcSequence{.y = probabilities_.f32(),
                    .indicators = bottom[1].f32(),
                    .labels = bottom[2].f32(),
                    .alpha = alpha_,
                    .beta = beta_,
                    .loss = losses_,
                    .gradient = gradient_,
                    .fault = ops.fault(),
                    .steps = x_[0],
                    .batch = x_[1],
                    .classes = x_[2],
                    .most_labels = most_labels_,
                    .blank = blank(),
                    .layer = context_.index,
                    .collapses = param_.ctc_loss_param().preprocess_collapse_repeated()},
        x_[1]);
    run_rows(ops, CtcMean{losses_, top[0].f32(), scale()}, 1, x_[1]);
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    if (clear_without_loss(ops, args) || !args.dbottom[0]) return;
    const Grad& dx = args.dbottom[0];
    run(ops,
        CtcGradient{gradient_, args.dtop[0].f32(), dx.t.f32(), scale(),
                    dx.how == Write::accumulate},
        dx.t.count());
  }

  std::string explain(const Fault& fault) const override {
    if (fault.index < x_[1]) {
      return str("the labels of sequence ", fault.index, " need ", fault.value,
                 " steps (one each, and a blank between equal ones), more than it has");
    }
    return str("label ", fault.value, " of sequence ", fault.index % x_[1], " must be in 0..",
               x_[2] - 1, " and not the blank, ", blank());
  }
  int64_t sample_of(const Fault& fault) const override { return fault.index % x_[1]; }

 private:
  int blank() const {
    const int index = param_.ctc_loss_param().blank_index();
    return index < 0 ? static_cast<int>(x_[2]) - 1 : index;
  }
  float scale() const { return 1 / static_cast<float>(x_[1] > 0 ? x_[1] : 1); }

  Shape x_;
  int64_t most_labels_ = 0;
  std::unique_ptr<SoftmaxPlan> softmax_;
  WorkspaceParts parts_;
  int softmax_part_ = 0, probabilities_part_ = 0, alpha_part_ = 0, beta_part_ = 0;
  int losses_part_ = 0, gradient_part_ = 0;
  Tensor probabilities_;
  float *alpha_ = nullptr, *beta_ = nullptr, *losses_ = nullptr, *gradient_ = nullptr;
};

REGISTER_LAYER("CTCLoss", CtcLossLayer)

}  // namespace
}  // namespace crema
