// y = (x - mean) / (std + eps) over each plane, or over each item with across_channels. eps stands
// outside the root, and the gradient leaves it out of the derivative of std, as Caffe's does.
// BVLC: a constant plane gives exactly 0 (Caffe: rounding noise over eps).
#include "ops/kernels/mvn.h"

#include <glog/logging.h>

#include "layers/checks.h"
#include "layers/common.h"

namespace crema {
namespace {

class MvnLayer : public Layer {
 public:
  using Layer::Layer;

  Shapes infer(const Shapes& bottom) override {
    require(bottom[0].axes() >= 2, bottom_text(param_, 0), " of shape ", bottom[0],
            " must have at least 2 axes");
    require(param_.mvn_param().eps() >= 0, "eps: must not be negative");
    rows_ = bottom[0].count(0, param_.mvn_param().across_channels() ? 1 : 2);
    cols_ = bottom[0].count() / rows_;
    warn_of_single_values();
    return {bottom[0]};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.can_overwrite_bottom = traits.accumulates = true;
    traits.backward_reads_bottoms = 0;
    traits.backward_reads_tops = has_variance() ? 1 : 0;
    return traits;
  }

  Needs plan(Ops&, const PlanContext& context) override {
    const size_t bytes = TensorDesc{{rows_}}.bytes();
    parts_.clear();
    mean_part_ = parts_.add({.scratch = bytes});
    product_part_ = parts_.add({.scratch = bytes});
    inverse_part_ = parts_.add(context.train ? Needs{.saved = bytes} : Needs{.scratch = bytes});
    return parts_.total();
  }

  void bind(const Workspace& workspace) override {
    mean_ = f32_of(parts_.part(workspace, mean_part_).scratch, {{rows_}});
    product_ = f32_of(parts_.part(workspace, product_part_).scratch, {{rows_}});
    const Workspace inverse = parts_.part(workspace, inverse_part_);
    inverse_ = f32_of(inverse.saved ? inverse.saved : inverse.scratch, {{rows_}});
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    const float* const x = bottom[0].f32();
    run_rows(ops, MvnMean{x, mean_.f32(), cols_}, rows_, cols_);
    if (has_variance()) {
      run_rows(ops, MvnInverse{x, mean_.f32(), inverse_.f32(), cols_, param_.mvn_param().eps()},
               rows_, cols_);
    }
    run(ops, MvnNormalize{x, mean_.f32(), inverse(), top[0].f32(), Divider(cols_)}, top[0].count());
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    const float* const y = args.top[0].f32();
    const float* const dy = args.dtop[0].f32();
    run_rows(ops, MvnMeanProduct{dy, nullptr, mean_.f32(), cols_}, rows_, cols_);
    if (has_variance()) run_rows(ops, MvnMeanProduct{dy, y, product_.f32(), cols_}, rows_, cols_);
    run(ops,
        MvnBackward{y, dy, mean_.f32(), product_.f32(), inverse(), dx.t.f32(), Divider(cols_),
                    dx.how == Write::accumulate},
        dx.t.count());
  }

 private:
  bool has_variance() const { return param_.mvn_param().normalize_variance(); }
  const float* inverse() const { return has_variance() ? inverse_.f32() : nullptr; }

  /// A blob of two axes has planes of one value, in Caffe as here.
  void warn_of_single_values() {
    LOG_IF(WARNING, cols_ == 1 && !has_told_)
        << "layer \"" << param_.name()
        << "\" (MVN): each plane is a single value, so the top is 0; "
        << "across_channels: true normalises over the channels";
    has_told_ = cols_ == 1;
  }

  bool has_told_ = false;
  int64_t rows_ = 1, cols_ = 1;
  WorkspaceParts parts_;
  int mean_part_ = 0, product_part_ = 0, inverse_part_ = 0;
  Tensor mean_, product_, inverse_;
};

REGISTER_LAYER("MVN", MvnLayer)

}  // namespace
}  // namespace crema
