// Any number of spatial axes, each direction gathering the products of one output element. Sums are
// kept in double.
#include "ops/cpu/conv_direct.h"

#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/parallel.h"

namespace crema {
namespace {

/// Strides of a tensor's axes in elements.
std::array<int64_t, kMaxAxes> strides_in(const TensorDesc& desc) {
  const dnnl::memory::dims dims(desc.shape.begin(), desc.shape.end());
  const auto strides = strides_of(dims, desc.layout);
  std::array<int64_t, kMaxAxes> out{};
  std::copy(strides.begin(), strides.end(), out.begin());
  return out;
}

class DirectConvPlan : public ConvPlan {
 public:
  DirectConvPlan(const Isa& isa, const ConvDesc& desc)
      : isa_(isa),
        desc_(desc),
        axes_(desc.pad.axes),
        x_strides_(strides_in(desc.x)),
        y_strides_(strides_in(desc.y)),
        in_per_group_(desc.w.shape[1]),
        out_per_group_(desc.w.shape[0] / desc.groups),
        window_(desc.w.shape.count(2)),
        x_plane_(desc.x.shape.count(2)),
        y_plane_(desc.y.shape.count(2)) {}

  void weights_changed(CTensor) override {}

  void forward(CTensor x, CTensor w, CTensor b, CTensor residual, Tensor y) override {
    const int64_t batch = desc_.y.shape[0], outputs = desc_.y.shape[1];
    each(batch * outputs * y_plane_, in_per_group_ * window_, [&](int64_t i) {
      const int64_t place = i % y_plane_, k = i / y_plane_ % outputs, n = i / y_plane_ / outputs;
      double sum = b ? static_cast<double>(b.f32()[k]) : 0.0;
      for (int64_t t = 0; t < window_; ++t) {
        const int64_t at = source_of(place, t);
        if (at < 0) continue;
        for (int64_t c = 0; c < in_per_group_; ++c) {
          sum += product(w.f32()[(k * in_per_group_ + c) * window_ + t],
                         x.f32()[x_at(n, k / out_per_group_ * in_per_group_ + c) + at]);
        }
      }
      const int64_t to = y_at(n, k) + offset_in(place, desc_.y.shape, y_strides_);
      y.f32()[to] = static_cast<float>(sum) + (residual ? residual.f32()[to] : 0.0f);
    });
    if (desc_.act.kind != ActKind::none) {
      unary_loop(isa_, unary_of(desc_.act), unary_args_of(desc_.act), y.f32(), y.f32(), y.count());
    }
  }

  void backward_data(CTensor dy, CTensor w, Grad dx) override {
    if (!dx) return;
    const int64_t batch = desc_.x.shape[0], inputs = desc_.x.shape[1];
    each(batch * inputs * x_plane_, out_per_group_ * window_, [&](int64_t i) {
      const int64_t place = i % x_plane_, c = i / x_plane_ % inputs, n = i / x_plane_ / inputs;
      const int64_t group = c / in_per_group_;
      double sum = 0;
      for (int64_t t = 0; t < window_; ++t) {
        const int64_t at = target_of(place, t);
        if (at < 0) continue;
        for (int64_t k = group * out_per_group_; k < (group + 1) * out_per_group_; ++k) {
          sum += product(w.f32()[(k * in_per_group_ + c % in_per_group_) * window_ + t],
                         dy.f32()[y_at(n, k) + at]);
        }
      }
      store(dx, x_at(n, c) + offset_in(place, desc_.x.shape, x_strides_), sum);
    });
  }

  void backward_params(CTensor x, CTensor dy, Grad dw, Grad db) override {
    const int64_t batch = desc_.y.shape[0], outputs = desc_.y.shape[1];
    if (dw) {
      each(dw.t.count(), batch * y_plane_, [&](int64_t i) {
        const int64_t t = i % window_, c = i / window_ % in_per_group_,
                      k = i / window_ / in_per_group_;
        double sum = 0;
        for (int64_t place = 0; place < y_plane_; ++place) {
          const int64_t at = source_of(place, t);
          if (at < 0) continue;
          const int64_t from = offset_in(place, desc_.y.shape, y_strides_);
          for (int64_t n = 0; n < batch; ++n) {
            sum += product(x.f32()[x_at(n, k / out_per_group_ * in_per_group_ + c) + at],
                           dy.f32()[y_at(n, k) + from]);
          }
        }
        store(dw, i, sum);
      });
    }
    if (!db) return;
    each(outputs, batch * y_plane_, [&](int64_t k) {
      double sum = 0;
      for (int64_t n = 0; n < batch; ++n) {
        for (int64_t place = 0; place < y_plane_; ++place) {
          sum += static_cast<double>(
              dy.f32()[y_at(n, k) + offset_in(place, desc_.y.shape, y_strides_)]);
        }
      }
      store(db, k, sum);
    });
  }

 private:
  using Strides = std::array<int64_t, kMaxAxes>;

  template <class F>
  static void each(int64_t n, int64_t cost, const F& f) {
    parallel_ranges(n, n * cost, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) f(i);
    });
  }
  static double product(float a, float b) {
    return static_cast<double>(a) * static_cast<double>(b);
  }
  static void store(const Grad& grad, int64_t at, double value) {
    float& to = grad.t.f32()[at];
    to = grad.how == Write::accumulate ? to + static_cast<float>(value) : static_cast<float>(value);
  }
  int64_t x_at(int64_t n, int64_t c) const { return n * x_strides_[0] + c * x_strides_[1]; }
  int64_t y_at(int64_t n, int64_t k) const { return n * y_strides_[0] + k * y_strides_[1]; }

  /// The offset of the place-th position of a plane.
  int64_t offset_in(int64_t place, const Shape& shape, const Strides& strides) const {
    int64_t offset = 0;
    for (int a = axes_ - 1; a >= 0; --a) {
      offset += place % shape[a + 2] * strides[static_cast<size_t>(a) + 2];
      place /= shape[a + 2];
    }
    return offset;
  }
  /// Where in x's plane output place reads through window element t, or -1: in the padding.
  int64_t source_of(int64_t place, int64_t t) const {
    int64_t offset = 0;
    for (int a = axes_ - 1; a >= 0; --a) {
      const int64_t size = desc_.w.shape[a + 2], out = desc_.y.shape[a + 2];
      const int64_t at =
          place % out * desc_.stride[a] - desc_.pad[a] + t % size * desc_.dilation[a];
      if (at < 0 || at >= desc_.x.shape[a + 2]) return -1;
      offset += at * x_strides_[static_cast<size_t>(a) + 2];
      place /= out;
      t /= size;
    }
    return offset;
  }
  /// Which place of y's plane reads input place through window element t, or -1: none.
  int64_t target_of(int64_t place, int64_t t) const {
    int64_t offset = 0;
    for (int a = axes_ - 1; a >= 0; --a) {
      const int64_t size = desc_.w.shape[a + 2], in = desc_.x.shape[a + 2];
      const int64_t start = place % in + desc_.pad[a] - t % size * desc_.dilation[a];
      if (start < 0 || start % desc_.stride[a] != 0) return -1;
      const int64_t at = start / desc_.stride[a];
      if (at >= desc_.y.shape[a + 2]) return -1;
      offset += at * y_strides_[static_cast<size_t>(a) + 2];
      place /= in;
      t /= size;
    }
    return offset;
  }

  const Isa& isa_;
  ConvDesc desc_;
  int axes_;
  Strides x_strides_, y_strides_;
  int64_t in_per_group_, out_per_group_, window_, x_plane_, y_plane_;
};

}  // namespace

std::unique_ptr<ConvPlan> make_direct_conv(const Isa& isa, const ConvDesc& desc) {
  return std::make_unique<DirectConvPlan>(isa, desc);
}

}  // namespace crema
