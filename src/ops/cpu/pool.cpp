// Pooling by loops of our own in both layouts: exact in Caffe's corner cases, which the library's
// are not, and as fast. The winner of each window is kept from forward to backward.
#include <cassert>

#include "base/error.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/parallel.h"

namespace crema {
namespace {

class LoopPoolPlan : public PoolPlan {
 public:
  LoopPoolPlan(CpuOps& ops, const PoolDesc& desc) : ops_(ops), desc_(desc) {
    require(desc.kernel.axes >= 1 && desc.kernel.axes <= 3,
            "pooling takes one to three spatial axes, here are ", desc.kernel.axes);
    PoolShape& s = args_.shape;
    for (int a = 0; a < 3; ++a) {
      s.size[a] = s.out[a] = s.kernel[a] = s.stride[a] = 1;
      s.pad[a] = 0;
    }
    const int lead = 3 - desc.kernel.axes;
    for (int a = 0; a < desc.kernel.axes; ++a) {
      s.size[lead + a] = desc.x.shape[a + 2];
      s.out[lead + a] = desc.y.shape[a + 2];
      s.kernel[lead + a] = desc.kernel[a];
      s.stride[lead + a] = desc.stride[a];
      s.pad[lead + a] = desc.pad[a];
    }
    s.channels = desc.x.shape[1];
    window_ = s.kernel[0] * s.kernel[1] * s.kernel[2];
    args_.kind = desc.kind;
    args_.train = desc.train;
    args_.seed = desc.seed;
    args_.has_wide_winner = window_ > 255;
    args_.winner_stride = (s.channels + 63) / 64 * 64;
    keeps_winner_ = desc.train && desc.kind != PoolKind::average;
    is_nhwc_ = desc.x.layout == Layout::nhwc;
  }

  Needs needs() const override {
    if (!keeps_winner_) return {};
    const PoolShape& s = args_.shape;
    const int64_t positions = desc_.y.shape[0] * s.out[0] * s.out[1] * s.out[2];
    if (args_.has_wide_winner) return saved(positions * s.channels * int64_t{sizeof(int32_t)});
    return saved(positions * (is_nhwc_ ? args_.winner_stride : s.channels));
  }
  void bind(const Workspace& workspace) override {
    args_.winner = keeps_winner_ ? workspace.saved.data : nullptr;
  }

  void forward(CTensor x, Tensor y, Tensor mask) override {
    PoolArgs args = args_;
    args.x = x.f32();
    args.y = y.f32();
    args.mask = mask.f32();
    args.forward_count = ops_.step_scalars()->forward_count;
    const Isa& isa = ops_.isa();
    const int64_t channels = args.shape.channels;
    const int64_t rows = y.shape()[0] * args.shape.out[0] * args.shape.out[1];
    const int64_t units = is_nhwc_ ? rows : y.shape()[0] * channels;
    const int64_t cost = is_nhwc_ ? 1 : 4;
    parallel_ranges(units, y.count() * window_ * cost, 1, [&](int64_t begin, int64_t end) {
      is_nhwc_ ? isa.pool_forward_nhwc(args, begin, end) : isa.pool_forward_nchw(args, begin, end);
    });
  }

  void backward(CTensor, CTensor, CTensor dy, Grad dx) override {
    if (!dx) return;
    PoolArgs args = args_;
    args.dy = dy.f32();
    args.dx = dx.t.f32();
    args.accumulate = dx.how == Write::accumulate;
    const Isa& isa = ops_.isa();
    const int64_t channels = args.shape.channels;
    const int64_t rows = dx.t.shape()[0] * args.shape.size[0] * args.shape.size[1];
    const int64_t units = is_nhwc_ ? rows : dx.t.shape()[0] * channels;
    parallel_ranges(units, dx.t.count() * 4, 1, [&](int64_t begin, int64_t end) {
      is_nhwc_ ? isa.pool_backward_nhwc(args, begin, end)
               : isa.pool_backward_nchw(args, begin, end);
    });
  }

 private:
  static Needs saved(int64_t bytes) { return {.saved = static_cast<size_t>(bytes)}; }

  CpuOps& ops_;
  PoolDesc desc_;
  PoolArgs args_{};
  int64_t window_ = 1;
  bool keeps_winner_ = false, is_nhwc_ = false;
};

}  // namespace

std::unique_ptr<PoolPlan> CpuOps::plan(const PoolDesc& desc) {
  return std::make_unique<LoopPoolPlan>(*this, desc);
}

}  // namespace crema
