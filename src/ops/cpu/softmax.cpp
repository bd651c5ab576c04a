// Softmax along any axis of either layout: the tensor in memory is [outer, n, inner].
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/parallel.h"

namespace crema {
namespace {

class LoopSoftmaxPlan : public SoftmaxPlan {
 public:
  LoopSoftmaxPlan(CpuOps& ops, const SoftmaxDesc& desc) : ops_(ops) {
    const Shape& shape = desc.x.shape;
    const int axis = shape.canonical(desc.axis);
    const bool is_nhwc = desc.x.layout == Layout::nhwc && shape.axes() > 2;
    args_.n = shape[axis];
    args_.inner = shape.count(axis + 1);
    if (is_nhwc && axis == 1) args_.inner = 1;
    if (is_nhwc && axis > 1) args_.inner *= shape[1];
    units_ = args_.n == 0 ? 0 : shape.count() / args_.n;
  }

  void forward(CTensor x, Tensor y) override {
    SoftmaxArgs args = args_;
    args.x = x.f32();
    args.y = y.f32();
    parallel_ranges(units_, units_ * args.n * 8, 1, [&](int64_t begin, int64_t end) {
      ops_.isa().softmax_forward(args, begin, end);
    });
  }

  void backward(CTensor y, CTensor dy, Grad dx) override {
    if (!dx) return;
    SoftmaxArgs args = args_;
    args.y = const_cast<float*>(y.f32());  // only read
    args.dy = dy.f32();
    args.dx = dx.t.f32();
    args.accumulate = dx.how == Write::accumulate;
    parallel_ranges(units_, units_ * args.n * 4, 1, [&](int64_t begin, int64_t end) {
      ops_.isa().softmax_backward(args, begin, end);
    });
  }

 private:
  CpuOps& ops_;
  SoftmaxArgs args_{};
  int64_t units_ = 0;
};

}  // namespace

std::unique_ptr<SoftmaxPlan> CpuOps::plan(const SoftmaxDesc& desc) {
  return std::make_unique<LoopSoftmaxPlan>(*this, desc);
}

}  // namespace crema
