// Batch normalisation, local response normalisation and softmax.
#include <algorithm>
#include <cmath>

#include "reference/indexing.h"
#include "reference/plans.h"

namespace crema::reference {
namespace {

class BatchNorm : public NormPlan {
 public:
  explicit BatchNorm(const NormDesc& desc)
      : desc_(desc), x_(desc.x), m_(static_cast<double>(x_.n * x_.spatial)) {}

  void forward(CTensor x, Tensor mean, Tensor variance, CTensor gamma, CTensor beta,
               Tensor y) override {
    for (int64_t c = 0; c < x_.c; ++c) {
      double mu = 0, var = 0;
      if (desc_.global_stats) {
        mu = mean.f32()[c];
        var = variance.f32()[c];
      } else {
        for_each_in(c, [&](int64_t i) { mu += x.f32()[i] / m_; });
        for_each_in(c, [&](int64_t i) { var += (x.f32()[i] - mu) * (x.f32()[i] - mu) / m_; });
        mean.f32()[c] = static_cast<float>(mu);
        variance.f32()[c] = static_cast<float>(var);
      }
      const double scale = (desc_.affine ? gamma.f32()[c] : 1.0) / std::sqrt(var + desc_.eps);
      const double shift = desc_.affine ? beta.f32()[c] : 0.0;
      for_each_in(c, [&](int64_t i) {
        const double value = scale * (x.f32()[i] - mu) + shift;
        y.f32()[i] = static_cast<float>(activate(desc_.act, value));
      });
    }
  }

  void backward(CTensor x, CTensor y, CTensor mean, CTensor variance, CTensor gamma, CTensor dy,
                Grad dx, Grad dgamma, Grad dbeta) override {
    std::vector<double> gx(static_cast<size_t>(x.count()), 0.0);
    std::vector<double> ggamma(static_cast<size_t>(x_.c), 0.0), gbeta = ggamma;
    for (int64_t c = 0; c < x_.c; ++c) {
      const double mu = mean.f32()[c];
      const double inverse = 1 / std::sqrt(static_cast<double>(variance.f32()[c]) + desc_.eps);
      const auto normal = [&](int64_t i) { return (x.f32()[i] - mu) * inverse; };
      const auto before_act = [&](int64_t i) {
        const double d = dy.f32()[i];
        return desc_.act.kind == ActKind::none ? d : d * activation_slope(desc_.act, y.f32()[i]);
      };
      double sum = 0, sum_normal = 0;
      for_each_in(c, [&](int64_t i) {
        sum += before_act(i);
        sum_normal += before_act(i) * normal(i);
      });
      const double scale = (desc_.affine ? gamma.f32()[c] : 1.0) * inverse;
      for_each_in(c, [&](int64_t i) {
        const double through_stats = desc_.global_stats ? 0.0 : (sum + normal(i) * sum_normal) / m_;
        gx[static_cast<size_t>(i)] = scale * (before_act(i) - through_stats);
      });
      ggamma[static_cast<size_t>(c)] = sum_normal;
      gbeta[static_cast<size_t>(c)] = sum;
    }
    write(gx, dx);
    write(ggamma, dgamma);
    write(gbeta, dbeta);
  }

 private:
  template <class F>
  void for_each_in(int64_t c, const F& f) const {
    for (int64_t n = 0; n < x_.n; ++n) {
      for (int64_t s = 0; s < x_.spatial; ++s) f(x_.offset(n, c, s));
    }
  }

  NormDesc desc_;
  Planes x_;
  double m_;
};

/// y = x * s^-beta with s = base + alpha/size * sum of x^2 over the neighbours; who they are is all
/// that the two regions differ in, and it is symmetric.
class Lrn : public LrnPlan {
 public:
  explicit Lrn(const LrnDesc& desc)
      : desc_(desc),
        x_(desc.x),
        half_((desc.size - 1) / 2),
        base_(desc.within ? 1.0 : desc.k),
        weight_(desc.alpha / std::pow(desc.size, desc.within ? desc.x.shape.axes() - 2 : 1)),
        windows_(within_windows(desc)) {}

  void forward(CTensor x, Tensor y) override {
    const std::vector<double> scale = scales(x);
    for (int64_t i = 0; i < x.count(); ++i) {
      const double s = scale[static_cast<size_t>(i)];
      y.f32()[i] = static_cast<float>(x.f32()[i] * std::pow(s, -desc_.beta));
    }
  }

  void backward(CTensor x, CTensor, CTensor dy, Grad dx) override {
    const std::vector<double> scale = scales(x);
    std::vector<double> result(static_cast<size_t>(x.count()), 0.0);
    for_each([&](int64_t n, int64_t c, int64_t s) {
      const int64_t i = x_.offset(n, c, s);
      const double si = scale[static_cast<size_t>(i)];
      result[static_cast<size_t>(i)] += dy.f32()[i] * std::pow(si, -desc_.beta);
      const double through_scale =
          -2.0 * weight_ * desc_.beta * dy.f32()[i] * x.f32()[i] * std::pow(si, -desc_.beta - 1.0);
      for_each_neighbour(n, c, s, [&](int64_t j) {
        result[static_cast<size_t>(j)] += through_scale * x.f32()[j];
      });
    });
    write(result, dx);
  }

 private:
  static Windows within_windows(const LrnDesc& desc) {
    const Shape sizes = spatial_shape(desc.x);
    const int axes = desc.within ? sizes.axes() : 0;
    if (axes == 0) return Windows({Shape(), Shape(), Shape(), {}, {}, {}});
    return Windows({sizes, sizes, shape_of(uniform_dims(axes, desc.size)), uniform_dims(axes, 1),
                    uniform_dims(axes, (desc.size - 1) / 2), uniform_dims(axes, 1)});
  }

  template <class F>
  void for_each(const F& f) const {
    for (int64_t n = 0; n < x_.n; ++n) {
      for (int64_t c = 0; c < x_.c; ++c) {
        for (int64_t s = 0; s < x_.spatial; ++s) f(n, c, s);
      }
    }
  }

  template <class F>
  void for_each_neighbour(int64_t n, int64_t c, int64_t s, const F& f) const {
    if (desc_.within) {
      for (int64_t tap = 0; tap < windows_.kernels(); ++tap) {
        if (windows_.at(s, tap) >= 0) f(x_.offset(n, c, windows_.at(s, tap)));
      }
      return;
    }
    for (int64_t k = std::max<int64_t>(0, c - half_); k <= std::min(x_.c - 1, c + half_); ++k) {
      f(x_.offset(n, k, s));
    }
  }

  std::vector<double> scales(CTensor x) const {
    std::vector<double> out(static_cast<size_t>(x.count()));
    for_each([&](int64_t n, int64_t c, int64_t s) {
      double sum = 0;
      for_each_neighbour(n, c, s,
                         [&](int64_t j) { sum += static_cast<double>(x.f32()[j]) * x.f32()[j]; });
      out[static_cast<size_t>(x_.offset(n, c, s))] = base_ + weight_ * sum;
    });
    return out;
  }

  LrnDesc desc_;
  Planes x_;
  int64_t half_;
  double base_, weight_;
  Windows windows_;
};

class Softmax : public SoftmaxPlan {
 public:
  explicit Softmax(const SoftmaxDesc& desc)
      : size_(desc.x.shape[desc.axis]),
        inner_(desc.x.shape.count(desc.axis + 1)),
        outer_(desc.x.shape.count(0, desc.axis)),
        offsets_(offsets(desc.x)) {}

  void forward(CTensor x, Tensor y) override {
    for_each_row([&](const std::vector<int64_t>& row) {
      double top = -INFINITY, sum = 0;
      for (const int64_t i : row) top = std::max<double>(top, x.f32()[i]);
      for (const int64_t i : row) sum += std::exp(x.f32()[i] - top);
      for (const int64_t i : row) {
        y.f32()[i] = static_cast<float>(std::exp(x.f32()[i] - top) / sum);
      }
    });
  }

  void backward(CTensor y, CTensor dy, Grad dx) override {
    std::vector<double> result(static_cast<size_t>(y.count()), 0.0);
    for_each_row([&](const std::vector<int64_t>& row) {
      double dot = 0;
      for (const int64_t i : row) dot += static_cast<double>(y.f32()[i]) * dy.f32()[i];
      for (const int64_t i : row) {
        result[static_cast<size_t>(i)] = y.f32()[i] * (dy.f32()[i] - dot);
      }
    });
    write(result, dx);
  }

 private:
  template <class F>
  void for_each_row(const F& f) const {
    std::vector<int64_t> row(static_cast<size_t>(size_));
    for (int64_t o = 0; o < outer_; ++o) {
      for (int64_t i = 0; i < inner_; ++i) {
        for (int64_t k = 0; k < size_; ++k) {
          row[static_cast<size_t>(k)] = offsets_[static_cast<size_t>((o * size_ + k) * inner_ + i)];
        }
        f(row);
      }
    }
  }

  int64_t size_, inner_, outer_;
  std::vector<int64_t> offsets_;
};

}  // namespace

std::unique_ptr<NormPlan> make_plan(const NormDesc& desc) {
  return std::make_unique<BatchNorm>(desc);
}
std::unique_ptr<LrnPlan> make_plan(const LrnDesc& desc) { return std::make_unique<Lrn>(desc); }
std::unique_ptr<SoftmaxPlan> make_plan(const SoftmaxDesc& desc) {
  return std::make_unique<Softmax>(desc);
}

}  // namespace crema::reference
