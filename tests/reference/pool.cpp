// Pooling as ops.h words it.
#include <cfloat>

#include "base/philox.h"
#include "reference/indexing.h"
#include "reference/plans.h"

namespace crema::reference {
namespace {

class Pooling : public PoolPlan {
 public:
  Pooling(const PoolDesc& desc, const StepScalars* step)
      : desc_(desc),
        step_(step),
        x_(desc.x),
        y_(desc.y),
        windows_({spatial_shape(desc.x), spatial_shape(desc.y), shape_of(desc.kernel), desc.stride,
                  desc.pad, uniform_dims(desc.kernel.axes, 1)}) {}

  void forward(CTensor x, Tensor y, Tensor mask) override {
    draw_ = step_->forward_count;
    for_each_output([&](int64_t n, int64_t c, int64_t s) {
      const int64_t to = y_.offset(n, c, s);
      if (desc_.kind == PoolKind::average) {
        y.f32()[to] = static_cast<float>(sum(x, n, c, s, 1) / divisor(s));
      } else if (desc_.kind == PoolKind::stochastic && !desc_.train) {
        const double total = sum(x, n, c, s, 1);
        y.f32()[to] = static_cast<float>(total > 0 ? sum(x, n, c, s, 2) / total : 0.0);
      } else {
        const int64_t place = chosen(x, n, c, s);
        y.f32()[to] = place < 0 ? empty_value() : x.f32()[x_.offset(n, c, place)];
        if (desc_.mask) mask.f32()[to] = static_cast<float>(place);
      }
    });
  }

  void backward(CTensor x, CTensor, CTensor dy, Grad dx) override {
    if (!dx) return;
    std::vector<double> result(static_cast<size_t>(dx.t.count()), 0.0);
    for_each_output([&](int64_t n, int64_t c, int64_t s) {
      const double d = dy.f32()[y_.offset(n, c, s)];
      if (desc_.kind != PoolKind::average) {
        const int64_t place = chosen(x, n, c, s);
        if (place >= 0) result[static_cast<size_t>(x_.offset(n, c, place))] += d;
        return;
      }
      for (int64_t tap = 0; tap < windows_.kernels(); ++tap) {
        const int64_t place = windows_.at(s, tap);
        if (place >= 0) result[static_cast<size_t>(x_.offset(n, c, place))] += d / divisor(s);
      }
    });
    write(result, dx);
  }

 private:
  template <class F>
  void for_each_output(const F& f) const {
    for (int64_t n = 0; n < y_.n; ++n) {
      for (int64_t c = 0; c < y_.c; ++c) {
        for (int64_t s = 0; s < y_.spatial; ++s) f(n, c, s);
      }
    }
  }

  /// Sum over the window of x to the power.
  double sum(CTensor x, int64_t n, int64_t c, int64_t s, int power) const {
    double total = 0;
    for (int64_t tap = 0; tap < windows_.kernels(); ++tap) {
      const int64_t place = windows_.at(s, tap);
      if (place < 0) continue;
      const double v = x.f32()[x_.offset(n, c, place)];
      total += power == 2 ? v * v : v;
    }
    return total;
  }

  /// How many elements the window has once clipped to [-pad, size + pad).
  double divisor(int64_t s) const {
    const std::vector<int64_t> out = unravel(spatial_shape(desc_.y), s);
    double size = 1;
    for (int axis = 0; axis < desc_.kernel.axes; ++axis) {
      const int64_t begin = out[static_cast<size_t>(axis)] * desc_.stride[axis] - desc_.pad[axis];
      const int64_t limit = desc_.x.shape[axis + 2] + desc_.pad[axis];
      size *= static_cast<double>(std::min(begin + desc_.kernel[axis], limit) - begin);
    }
    return size;
  }

  /// The place whose value the output takes; -1: none.
  int64_t chosen(CTensor x, int64_t n, int64_t c, int64_t s) const {
    return desc_.kind == PoolKind::max ? maximum(x, n, c, s) : drawn(x, n, c, s);
  }

  int64_t maximum(CTensor x, int64_t n, int64_t c, int64_t s) const {
    float best = -FLT_MAX;
    int64_t where = -1;
    for (int64_t tap = 0; tap < windows_.kernels(); ++tap) {
      const int64_t place = windows_.at(s, tap);
      if (place < 0) continue;
      const float v = x.f32()[x_.offset(n, c, place)];
      if (v > best) {
        best = v;
        where = place;
      }
    }
    return where;
  }

  /// One place of the window with probability proportional to its value, by (seed, forward count,
  /// element in N,C,H,W order); the first where there is nothing to choose by.
  int64_t drawn(CTensor x, int64_t n, int64_t c, int64_t s) const {
    const auto element = static_cast<uint64_t>((n * y_.c + c) * y_.spatial + s);
    const double u = uniform01(philox(desc_.seed, element / 4, draw_).v[element % 4]);
    const double threshold = u * sum(x, n, c, s, 1);
    double total = 0;
    int64_t first = -1;
    for (int64_t tap = 0; tap < windows_.kernels(); ++tap) {
      const int64_t place = windows_.at(s, tap);
      if (place < 0) continue;
      if (first < 0) first = place;
      total += x.f32()[x_.offset(n, c, place)];
      if (total > threshold) return place;
    }
    return first;
  }

  float empty_value() const { return desc_.kind == PoolKind::max ? -FLT_MAX : 0.0f; }

  PoolDesc desc_;
  const StepScalars* step_;
  uint64_t draw_ = 0;
  Planes x_, y_;
  Windows windows_;
};

}  // namespace

std::unique_ptr<PoolPlan> make_plan(const PoolDesc& desc, const StepScalars* step) {
  return std::make_unique<Pooling>(desc, step);
}

}  // namespace crema::reference
