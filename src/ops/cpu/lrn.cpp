// Local response normalisation by loops of our own: fast for every beta and size, and nothing kept
// from forward to backward.
#include "base/error.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/parallel.h"

namespace crema {
namespace {

class LoopLrnPlan : public LrnPlan {
 public:
  LoopLrnPlan(CpuOps& ops, const LrnDesc& desc) : ops_(ops), desc_(desc) {
    const Shape& shape = desc.x.shape;
    require(shape.axes() >= 2, "LRN needs at least two axes, here are ", shape.axes());
    args_.channels = shape[1];
    args_.plane = shape.count(2);
    args_.width = shape.axes() > 2 ? shape[shape.axes() - 1] : 1;
    args_.height = args_.width == 0 ? 0 : args_.plane / args_.width;
    args_.size = desc.size;
    args_.is_nhwc = args_.plane == 1 || desc.x.layout == Layout::nhwc;
    const auto size = static_cast<float>(desc.size);
    args_.alpha = desc.alpha / (desc.within ? size * size : size);
    args_.beta = desc.beta;
    args_.k = desc.within ? 1.0f : desc.k;
    require(!desc.within || shape.axes() <= 4, "LRN within a channel takes pictures of two axes");
  }

  Needs needs() const override {
    const bool keeps_ratio = desc_.within && desc_.train;
    return {.scratch = keeps_ratio ? 2 * (desc_.x.bytes() + 64) : 0};
  }
  void bind(const Workspace& workspace) override {
    args_.ratio = workspace.scratch.f32();
    args_.shrink = part(workspace.scratch, (desc_.x.bytes() + 63) / 64 * 64);
  }

  void forward(CTensor x, Tensor y) override {
    LrnArgs args = args_;
    args.x = x.f32();
    args.y = y.f32();
    each(desc_.within ? ops_.isa().lrn_within_forward : ops_.isa().lrn_forward, args);
  }

  void backward(CTensor x, CTensor, CTensor dy, Grad dx) override {
    if (!dx) return;
    LrnArgs args = args_;
    args.x = x.f32();
    args.dy = dy.f32();
    args.dx = dx.t.f32();
    args.accumulate = dx.how == Write::accumulate;
    if (desc_.within) each(ops_.isa().lrn_within_ratio, args);
    each(desc_.within ? ops_.isa().lrn_within_backward : ops_.isa().lrn_backward, args);
  }

 private:
  void each(void (*loop)(const LrnArgs&, int64_t, int64_t), const LrnArgs& args) const {
    const int64_t batch = desc_.x.shape[0];
    const int64_t lines = batch * args.height * (args.is_nhwc ? 1 : args.channels);
    const int64_t grain = args.is_nhwc || desc_.within ? 1 : 16;
    parallel_ranges(desc_.within ? lines : batch * args.plane, desc_.x.count() * 8, grain,
                    [&](int64_t begin, int64_t end) { loop(args, begin, end); });
  }

  CpuOps& ops_;
  LrnDesc desc_;
  LrnArgs args_{};
};

}  // namespace

std::unique_ptr<LrnPlan> CpuOps::plan(const LrnDesc& desc) {
  return std::make_unique<LoopLrnPlan>(*this, desc);
}

}  // namespace crema
