// Batch normalisation by loops of our own. Sums are taken over parts of the rows that depend on the
// shape alone, so results are the same for any number of threads.
#include <cmath>

#include "base/error.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/parallel.h"

namespace crema {
namespace {

class LoopNormPlan : public NormPlan {
 public:
  LoopNormPlan(CpuOps& ops, const NormDesc& desc) : ops_(ops), desc_(desc) {
    const Shape& shape = desc.x.shape;
    require(shape.axes() >= 2, "batch normalisation needs at least two axes, here are ",
            shape.axes());
    args_.channels = shape[1];
    args_.plane = shape.count(2);
    args_.batch = shape[0];
    args_.rows = args_.batch * args_.plane;
    is_nhwc_ = args_.plane == 1 || desc.x.layout == Layout::nhwc;
    constexpr int64_t kMostParts = 64, kLeastRows = 128;
    args_.part_rows = std::max((args_.rows + kMostParts - 1) / kMostParts, kLeastRows);
    parts_ = is_nhwc_ ? (args_.rows + args_.part_rows - 1) / args_.part_rows : 1;
    args_.is_low = is_low(desc.x.dtype);
    has_simple_act_ = desc.act.kind == ActKind::none || desc.act.kind == ActKind::relu;
    args_.slope = desc.act.kind == ActKind::relu ? desc.act.slope : 1.0f;
    const auto channels = static_cast<size_t>(args_.channels);
    Parts parts;
    moments_at_ = parts.add(sizeof(NormMoments) * channels * static_cast<size_t>(parts_));
    factors_at_ = parts.add(sizeof(float) * 3 * channels);
    if (!has_simple_act_) masked_at_ = parts.add(desc.x.bytes());
    scratch_bytes_ = parts.total();
  }

  Needs needs() const override { return {.scratch = scratch_bytes_}; }

  void bind(const Workspace& workspace) override {
    scratch_ = workspace.scratch;
    args_.moments = reinterpret_cast<NormMoments*>(part(scratch_, moments_at_));
    scale_ = part(scratch_, factors_at_);
    shift_ = scale_ + args_.channels;
    slant_ = shift_ + args_.channels;
    args_.scale = scale_;
    args_.shift = shift_;
    args_.slant = slant_;
  }

  void forward(CTensor x, Tensor mean, Tensor variance, CTensor gamma, CTensor beta,
               Tensor y) override {
    NormArgs args = args_;
    args.x = x.data;
    args.y = y.data;
    args.mean = mean.f32();
    const Isa& isa = ops_.isa();
    if (!desc_.global_stats) {
      sum(isa.norm_moments_nhwc, isa.norm_moments_nchw, args, x.count());
      for (int64_t c = 0; c < args.channels; ++c) {
        const NormMoments total = merged(c);
        mean.f32()[c] = static_cast<float>(total.mean);
        variance.f32()[c] = static_cast<float>(total.m2 / total.count);
      }
    }
    for (int64_t c = 0; c < args.channels; ++c) {
      scale_[c] = (gamma ? gamma.f32()[c] : 1.0f) * inverse(variance, c);
      shift_[c] = beta ? beta.f32()[c] : 0.0f;
    }
    map(isa.norm_apply_nhwc, isa.norm_apply_nchw, args, 2 * x.count());
    if (!has_simple_act_) {
      ops_.unary(unary_of(desc_.act), unary_args_of(desc_.act), y, y);
    }
  }

  void backward(CTensor x, CTensor y, CTensor mean, CTensor variance, CTensor gamma, CTensor dy,
                Grad dx, Grad dgamma, Grad dbeta) override {
    NormArgs args = args_;
    args.x = x.data;
    args.mean = mean.f32();
    args.dy = dy.data;
    args.y_read = desc_.act.kind == ActKind::none ? dy.data : y.data;
    if (!has_simple_act_) {
      Tensor masked{part(scratch_, masked_at_), desc_.x};
      act_backward(ops_, desc_.act, y, dy, masked);
      args.dy = args.y_read = masked.data;
    }
    const Isa& isa = ops_.isa();
    const bool needs_sums = !desc_.global_stats || dgamma || dbeta;
    if (needs_sums) sum(isa.norm_sums_nhwc, isa.norm_sums_nchw, args, 2 * x.count());
    for (int64_t c = 0; c < args.channels; ++c) {
      const double inv = static_cast<double>(inverse(variance, c));
      const double scale = inv * (gamma ? static_cast<double>(gamma.f32()[c]) : 1.0);
      double total = 0, product = 0;
      for (int64_t p = 0; needs_sums && p < parts_; ++p) {
        total += args.moments[p * args.channels + c].mean;
        product += args.moments[p * args.channels + c].m2;
      }
      if (dgamma) store(dgamma, c, product * inv);
      if (dbeta) store(dbeta, c, total);
      const double share = desc_.global_stats ? 0.0 : 1.0 / static_cast<double>(args.rows);
      scale_[c] = static_cast<float>(scale);
      shift_[c] = static_cast<float>(-scale * total * share);
      slant_[c] = static_cast<float>(-scale * inv * inv * product * share);
    }
    if (!dx) return;
    args.dx = dx.t.data;
    args.accumulate = dx.how == Write::accumulate;
    map(isa.norm_dx_nhwc, isa.norm_dx_nchw, args, 3 * x.count());
  }

 private:
  using Loop = void (*)(const NormArgs&, int64_t, int64_t);

  /// Over parts of the rows, or channels.
  void sum(Loop nhwc, Loop nchw, const NormArgs& args, int64_t work) const {
    const Loop loop = is_nhwc_ ? nhwc : nchw;
    parallel_ranges(is_nhwc_ ? parts_ : args.channels, work, 1,
                    [&](int64_t begin, int64_t end) { loop(args, begin, end); });
  }
  /// Over rows, or planes.
  void map(Loop nhwc, Loop nchw, const NormArgs& args, int64_t work) const {
    const Loop loop = is_nhwc_ ? nhwc : nchw;
    parallel_ranges(is_nhwc_ ? args.rows : args.batch * args.channels, work, 1,
                    [&](int64_t begin, int64_t end) { loop(args, begin, end); });
  }
  NormMoments merged(int64_t c) const {
    NormMoments total = args_.moments[c];
    for (int64_t p = 1; p < parts_; ++p) {
      const NormMoments& m = args_.moments[p * args_.channels + c];
      const double count = total.count + m.count, delta = m.mean - total.mean;
      total.mean += delta * m.count / count;
      total.m2 += m.m2 + delta * delta * total.count * m.count / count;
      total.count = count;
    }
    return total;
  }
  float inverse(const CTensor& variance, int64_t c) const {
    return static_cast<float>(
        1.0 / std::sqrt(static_cast<double>(variance.f32()[c]) + static_cast<double>(desc_.eps)));
  }
  static void store(const Grad& grad, int64_t c, double value) {
    float& to = grad.t.f32()[c];
    to = static_cast<float>(value) + (grad.how == Write::accumulate ? to : 0.0f);
  }

  CpuOps& ops_;
  NormDesc desc_;
  NormArgs args_{};
  Tensor scratch_;
  float *scale_ = nullptr, *shift_ = nullptr, *slant_ = nullptr;
  int64_t parts_ = 1;
  size_t moments_at_ = 0, factors_at_ = 0, masked_at_ = 0, scratch_bytes_ = 0;
  bool is_nhwc_ = false, has_simple_act_ = true;
};

}  // namespace

std::unique_ptr<NormPlan> CpuOps::plan(const NormDesc& desc) {
  return std::make_unique<LoopNormPlan>(*this, desc);
}

}  // namespace crema
