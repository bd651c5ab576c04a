// Pooling by loops of our own in both layouts: exact in Caffe's corner cases, which the library's
// are not, and as fast. The winner of each window is kept from forward to backward. bf16 pictures
// are pooled one by one as f32, in memory that stays in the second cache.
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
    args_.has_wide_winner = window_ > 255 || s.kernel[0] * s.kernel[1] > kMostPoolRows;
    args_.winner_stride = (s.channels + 63) / 64 * 64;
    keeps_winner_ = desc.train && desc.kind != PoolKind::average;
    is_nhwc_ = desc.x.layout == Layout::nhwc;
    is_low_ = is_low(desc.x.dtype);
    require(!is_low_ || (!desc.mask && desc.kind != PoolKind::stochastic),
            "pooling in bf16 is maximum or average, without a mask");
    in_ = s.channels * s.size[0] * s.size[1] * s.size[2];
    out_ = s.channels * s.out[0] * s.out[1] * s.out[2];
    threads_ = is_low_ ? std::max(omp_get_max_threads(), omp_get_num_procs()) : 0;
  }

  Needs needs() const override {
    const int64_t scratch = int64_t{sizeof(float)} * threads_ * (in_ + out_);
    const int64_t saved = keeps_winner_ ? desc_.y.shape[0] * winner_bytes() : 0;
    return {.scratch = static_cast<size_t>(scratch), .saved = static_cast<size_t>(saved)};
  }
  void bind(const Workspace& workspace) override {
    args_.winner = keeps_winner_ ? workspace.saved.data : nullptr;
    scratch_ = static_cast<float*>(workspace.scratch.data);
  }

  void forward(CTensor x, Tensor y, Tensor mask) override {
    if (is_low_) return forward_low(x, y);
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
    if (is_low_) return backward_low(dy, dx);
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
  /// Of the winners of one picture.
  int64_t winner_bytes() const {
    if (args_.has_wide_winner) return out_ * int64_t{sizeof(int32_t)};
    return is_nhwc_ ? out_ / args_.shape.channels * args_.winner_stride : out_;
  }

  /// Calls f(picture, args whose x and dx, y and dy are f32 memory of this thread).
  template <class F>
  void over_pictures(int64_t work, const F& f) {
    parallel_ranges(desc_.x.shape[0], work, 1, [&](int64_t begin, int64_t end) {
      const int64_t rank = omp_in_parallel() ? omp_get_thread_num() : 0;
      float* const memory = scratch_ + rank * (in_ + out_);
      for (int64_t n = begin; n < end; ++n) {
        PoolArgs args = args_;
        args.x = args.dx = memory;
        args.y = memory + in_;
        args.dy = args.y;
        if (args.winner) args.winner = static_cast<char*>(args.winner) + n * winner_bytes();
        f(n, args);
      }
    });
  }

  void forward_low(const CTensor& x, const Tensor& y) {
    const Isa& isa = ops_.isa();
    const PoolShape& s = args_.shape;
    over_pictures(y.count() * window_ + x.count(), [&](int64_t n, PoolArgs& args) {
      isa.widen(x.bits() + n * in_, args.dx, in_);
      is_nhwc_ ? isa.pool_forward_nhwc(args, 0, s.out[0] * s.out[1])
               : isa.pool_forward_nchw(args, 0, s.channels);
      isa.narrow(args.y, y.bits() + n * out_, out_);
    });
  }

  void backward_low(const CTensor& dy, const Grad& dx) {
    const Isa& isa = ops_.isa();
    const PoolShape& s = args_.shape;
    over_pictures(dx.t.count() * 4, [&](int64_t n, PoolArgs& args) {
      args.accumulate = dx.how == Write::accumulate;
      isa.widen(dy.bits() + n * out_, args.y, out_);
      if (args.accumulate) isa.widen(dx.t.bits() + n * in_, args.dx, in_);
      is_nhwc_ ? isa.pool_backward_nhwc(args, 0, s.size[0] * s.size[1])
               : isa.pool_backward_nchw(args, 0, s.channels);
      isa.narrow(args.dx, dx.t.bits() + n * in_, in_);
    });
  }

  CpuOps& ops_;
  PoolDesc desc_;
  PoolArgs args_{};
  int64_t window_ = 1, in_ = 0, out_ = 0;  // elements of a window, a picture of x and of y
  int threads_ = 0;
  float* scratch_ = nullptr;  // [threads, x and y of a picture]
  bool keeps_winner_ = false, is_nhwc_ = false, is_low_ = false;
};

}  // namespace

std::unique_ptr<PoolPlan> CpuOps::plan(const PoolDesc& desc) {
  return std::make_unique<LoopPoolPlan>(*this, desc);
}

}  // namespace crema
