// ArgMax: the indices of the top_k largest values of each sample [N,1,K], with out_max_val indices
// and values [N,2,K]; along a written axis, that axis becomes the K indices, or with out_max_val
// values.
#include "ops/kernels/argmax.h"

#include <algorithm>

#include "layers/checks.h"

namespace crema {
namespace {

class ArgMaxLayer : public Layer {
 public:
  using Layer::Layer;

  Shapes infer(const Shapes& bottom) override {
    const ArgMaxParameter& p = param_.argmax_param();
    const Shape& x = bottom[0];
    require(x.axes() > 0, bottom_text(param_, 0), " needs a first axis, the samples");
    const int axis = p.has_axis() ? x.canonical(p.axis()) : 0;
    outer_ = p.has_axis() ? x.count(0, axis) : x[0];
    size_ = p.has_axis() ? x[axis] : x.count(1);
    inner_ = p.has_axis() ? x.count(axis + 1) : 1;
    require(p.top_k() >= 1 && p.top_k() <= size_, "top_k: ", p.top_k(), " must be in 1..", size_,
            ", the number of values to choose from (bottom shape ", x, ')');
    if (p.has_axis()) {
      Shape top = x;
      top[axis] = p.top_k();
      return {top};
    }
    Shape top(std::vector<int64_t>(static_cast<size_t>(std::max(x.axes(), 3)), 1));
    top[0] = x[0];
    top[1] = p.out_max_val() ? 2 : 1;
    top[2] = p.top_k();
    return {top};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.has_backward = false;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    return traits;
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    const ArgMaxParameter& p = param_.argmax_param();
    const bool both = p.out_max_val() && !p.has_axis();
    run(ops,
        ArgMaxRows{.x = bottom[0].f32(),
                   .y = top[0].f32(),
                   .inner = inner_,
                   .y_stride = p.top_k() * inner_ * (both ? 2 : 1),
                   .values_at = both ? p.top_k() : 0,
                   .size = static_cast<int>(size_),
                   .top_k = static_cast<int>(p.top_k()),
                   .indices = both || !p.out_max_val(),
                   .values = p.out_max_val()},
        outer_ * inner_);
  }

 private:
  int64_t outer_ = 1, size_ = 1, inner_ = 1;
};

REGISTER_LAYER("ArgMax", ArgMaxLayer)

}  // namespace
}  // namespace crema
