// Convolution and inner product, written as their sums. Weights are those of the last
// weights_changed(), so that a caller who forgets it is found out.
#include "base/error.h"
#include "reference/indexing.h"
#include "reference/plans.h"

namespace crema::reference {
namespace {

std::vector<double> doubles(CTensor t) {
  return t ? std::vector<double>(t.f32(), t.f32() + t.count()) : std::vector<double>();
}

/// The weights that a plan was told of.
class Weights {
 public:
  void set(CTensor w) { values_ = doubles(w); }
  const double* get() const {
    require(!values_.empty(), "weights_changed() was not called");
    return values_.data();
  }

 private:
  std::vector<double> values_;
};

class Convolution : public ConvPlan {
 public:
  explicit Convolution(const ConvDesc& desc)
      : desc_(desc),
        x_(desc.x),
        y_(desc.y),
        windows_({spatial_shape(desc.x), spatial_shape(desc.y), spatial_shape(desc.w), desc.stride,
                  desc.pad, desc.dilation}),
        group_in_(x_.c / desc.groups),
        group_out_(y_.c / desc.groups) {}

  void weights_changed(CTensor w) override { w_.set(w); }

  void forward(CTensor x, CTensor, CTensor b, CTensor residual, Tensor y) override {
    std::vector<double> sum(static_cast<size_t>(y.count()), 0.0);
    const double* w = w_.get();
    for_each_product([&](int64_t xi, int64_t wi, int64_t yi) {
      sum[static_cast<size_t>(yi)] += static_cast<double>(x.f32()[xi]) * w[wi];
    });
    for (int64_t n = 0; n < y_.n; ++n) {
      for (int64_t k = 0; k < y_.c; ++k) {
        for (int64_t s = 0; s < y_.spatial; ++s) {
          const int64_t i = y_.offset(n, k, s);
          double value = sum[static_cast<size_t>(i)];
          if (desc_.bias) value += b.f32()[k];
          if (desc_.residual) value += residual.f32()[i];
          y.f32()[i] = static_cast<float>(activate(desc_.act, value));
        }
      }
    }
  }

  void backward_data(CTensor dy, CTensor, Grad dx) override {
    if (!dx) return;
    std::vector<double> sum(static_cast<size_t>(dx.t.count()), 0.0);
    const double* w = w_.get();
    for_each_product([&](int64_t xi, int64_t wi, int64_t yi) {
      sum[static_cast<size_t>(xi)] += static_cast<double>(dy.f32()[yi]) * w[wi];
    });
    write(sum, dx);
  }

  void backward_params(CTensor x, CTensor dy, Grad dw, Grad db) override {
    if (dw) {
      std::vector<double> sum(static_cast<size_t>(dw.t.count()), 0.0);
      for_each_product([&](int64_t xi, int64_t wi, int64_t yi) {
        sum[static_cast<size_t>(wi)] += static_cast<double>(x.f32()[xi]) * dy.f32()[yi];
      });
      write(sum, dw);
    }
    if (db) {
      std::vector<double> sum(static_cast<size_t>(y_.c), 0.0);
      for (int64_t n = 0; n < y_.n; ++n) {
        for (int64_t k = 0; k < y_.c; ++k) {
          for (int64_t s = 0; s < y_.spatial; ++s) {
            sum[static_cast<size_t>(k)] += dy.f32()[y_.offset(n, k, s)];
          }
        }
      }
      write(sum, db);
    }
  }

 private:
  /// f(offset in x, in w, in y) for every product that convolution sums.
  template <class F>
  void for_each_product(const F& f) const {
    const int64_t kernels = windows_.kernels();
    for (int64_t n = 0; n < y_.n; ++n) {
      for (int64_t k = 0; k < y_.c; ++k) {
        const int64_t first = k / group_out_ * group_in_;
        for (int64_t s = 0; s < y_.spatial; ++s) {
          const int64_t yi = y_.offset(n, k, s);
          for (int64_t tap = 0; tap < kernels; ++tap) {
            const int64_t place = windows_.at(s, tap);
            if (place < 0) continue;
            for (int64_t c = 0; c < group_in_; ++c) {
              f(x_.offset(n, first + c, place), (k * group_in_ + c) * kernels + tap, yi);
            }
          }
        }
      }
    }
  }

  ConvDesc desc_;
  Planes x_, y_;
  Windows windows_;
  int64_t group_in_, group_out_;
  Weights w_;
};

class Linear : public LinearPlan {
 public:
  explicit Linear(const LinearDesc& desc) : desc_(desc) {}

  void weights_changed(CTensor w) override { w_.set(w); }

  void forward(CTensor x, CTensor, CTensor b, Tensor y) override {
    const double* w = w_.get();
    for (int64_t i = 0; i < desc_.m; ++i) {
      for (int64_t j = 0; j < desc_.n; ++j) {
        double sum = desc_.bias ? b.f32()[j] : 0.0;
        for (int64_t k = 0; k < desc_.k; ++k) {
          sum += static_cast<double>(x.f32()[i * desc_.k + k]) * w[at(j, k)];
        }
        y.f32()[i * desc_.n + j] = static_cast<float>(activate(desc_.act, sum));
      }
    }
  }

  void backward_data(CTensor dy, CTensor, Grad dx) override {
    std::vector<double> sum(static_cast<size_t>(desc_.m * desc_.k), 0.0);
    const double* w = w_.get();
    for (int64_t i = 0; i < desc_.m; ++i) {
      for (int64_t j = 0; j < desc_.n; ++j) {
        for (int64_t k = 0; k < desc_.k; ++k) {
          sum[static_cast<size_t>(i * desc_.k + k)] +=
              static_cast<double>(dy.f32()[i * desc_.n + j]) * w[at(j, k)];
        }
      }
    }
    write(sum, dx);
  }

  void backward_params(CTensor x, CTensor dy, Grad dw, Grad db) override {
    std::vector<double> weights(static_cast<size_t>(desc_.n * desc_.k), 0.0);
    std::vector<double> bias(static_cast<size_t>(desc_.n), 0.0);
    for (int64_t i = 0; i < desc_.m; ++i) {
      for (int64_t j = 0; j < desc_.n; ++j) {
        const double d = dy.f32()[i * desc_.n + j];
        bias[static_cast<size_t>(j)] += d;
        for (int64_t k = 0; k < desc_.k; ++k) {
          weights[static_cast<size_t>(at(j, k))] += d * x.f32()[i * desc_.k + k];
        }
      }
    }
    write(weights, dw);
    write(bias, db);
  }

 private:
  int64_t at(int64_t output, int64_t input) const {
    return desc_.transposed ? input * desc_.n + output : output * desc_.k + input;
  }

  LinearDesc desc_;
  Weights w_;
};

}  // namespace

std::unique_ptr<ConvPlan> make_plan(const ConvDesc& desc) {
  return std::make_unique<Convolution>(desc);
}
std::unique_ptr<LinearPlan> make_plan(const LinearDesc& desc) {
  return std::make_unique<Linear>(desc);
}

}  // namespace crema::reference
