// Accuracy: the share of positions whose label is among the top_k scores along axis; the second top
// is the same per class. Ties count against the label. BVLC: NaN scores count as correct there,
// never here; a top_k beyond the classes is refused.
#include "ops/kernels/accuracy.h"

#include <glog/logging.h>

#include "layers/checks.h"

namespace crema {
namespace {

class AccuracyLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, 2, 1, 2}; }

  Shapes infer(const Shapes& bottom) override {
    const AccuracyParameter& p = param_.accuracy_param();
    const int axis = bottom[0].canonical(p.axis());
    outer_ = bottom[0].count(0, axis);
    inner_ = bottom[0].count(axis + 1);
    classes_ = bottom[0][axis];
    require_labels(param_, 1, bottom[1], outer_, inner_);
    require(p.top_k() >= 1, "top_k: must be at least 1");
    require(p.top_k() <= classes_, "top_k: ", p.top_k(), " must not exceed the ", classes_,
            " classes of ", bottom_text(param_, 0));
    per_sample_ = labels_per_sample(bottom[0], axis);
    Shapes top{Shape{}};
    if (param_.top_size() > 1) top.push_back(Shape{classes_});
    return top;
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.has_backward = false;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    traits.calls_host = true;
    return traits;
  }

  Needs plan(Ops&, const PlanContext&) override {
    parts_.clear();
    score_part_ = parts_.add({.scratch = score_desc().bytes()});
    count_part_ = parts_.add({.scratch = count_desc().bytes()});
    nan_part_ = parts_.add({.scratch = sizeof(int32_t)});
    return parts_.total();
  }

  void bind(const Workspace& workspace) override {
    score_ = f32_of(parts_.part(workspace, score_part_).scratch, score_desc());
    count_ = f32_of(parts_.part(workspace, count_part_).scratch, count_desc());
    saw_nan_ = {parts_.part(workspace, nan_part_).scratch.data, {.shape = {}, .dtype = DType::i32}};
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    static constexpr int32_t kNone = 0;
    ops.upload(&kNone, saw_nan_);
    run(ops,
        AccuracyScore{.x = bottom[0].f32(),
                      .labels = bottom[1].f32(),
                      .score = score_.f32(),
                      .saw_nan = static_cast<int32_t*>(saw_nan_.data),
                      .fault = ops.fault(),
                      .inner = inner_,
                      .classes = static_cast<int>(classes_),
                      .top_k = static_cast<int>(param_.accuracy_param().top_k()),
                      .layer = context_.index,
                      .ignored = param_.accuracy_param().ignore_label(),
                      .ignores = param_.accuracy_param().has_ignore_label()},
        outer_ * inner_);
    mean(ops, bottom[1], top[0], false);
    if (top.size() > 1) mean(ops, bottom[1], top[1], true);
    if (!has_warned_) warn_of_nan(ops);
  }

  std::string explain(const Fault& fault) const override {
    return explain_label(fault, classes_, per_sample_);
  }
  int64_t sample_of(const Fault& fault) const override { return fault.index / per_sample_; }

 private:
  TensorDesc score_desc() const { return {.shape = Shape{outer_ * inner_}}; }
  TensorDesc count_desc() const { return {.shape = Shape{classes_}}; }

  void mean(Ops& ops, CTensor labels, const Tensor& y, bool per_class) const {
    const int64_t rows = per_class ? classes_ : 1;
    run_rows(ops, AccuracyCount{score_.f32(), labels.f32(), count_.f32(), per_class}, rows,
             outer_ * inner_);
    run_rows(ops, AccuracyMean{score_.f32(), labels.f32(), count_.f32(), y.f32(), per_class}, rows,
             outer_ * inner_);
  }

  void warn_of_nan(Ops& ops) {
    int32_t saw_nan = 0;
    ops.download(saw_nan_, &saw_nan);
    if (saw_nan == 0) return;
    has_warned_ = true;
    LOG(WARNING) << "layer \"" << param_.name() << "\" (Accuracy): " << bottom_text(param_, 0)
                 << " holds NaN: such samples never count as correct (said once)";
  }

  int64_t outer_ = 1, inner_ = 1, classes_ = 1, per_sample_ = 1;
  WorkspaceParts parts_;
  int score_part_ = 0, count_part_ = 0, nan_part_ = 0;
  Tensor score_, count_, saw_nan_;
  bool has_warned_ = false;
};

REGISTER_LAYER("Accuracy", AccuracyLayer)

}  // namespace
}  // namespace crema
