// Batch normalisation (Ioffe and Szegedy 2015): one reading for the statistics, taken about each
// channel's first value and added up in double, one pass for y with scale and activation; likewise
// backward.
#include "base/error.h"
#include "ops/cuda/act.h"
#include "ops/cuda/channel.h"
#include "ops/cuda/cuda_ops.h"

namespace crema::cuda {
namespace {

__device__ inline float inverse_of(float variance, float eps) {
  return static_cast<float>(1.0 / sqrt(static_cast<double>(variance) + static_cast<double>(eps)));
}

/// Deviations from the channel's first value, and their squares.
template <class T>
struct Deviations {
  const T* x;
  int64_t channel_stride;
  __device__ float2 operator()(int64_t at, int64_t c) const {
    const float d = widen(x[at]) - widen(x[c * channel_stride]);
    return make_float2(d, d * d);
  }
};

template <class T>
struct ForwardFactors {
  const T* x;
  const float *gamma, *beta;
  float *mean, *variance, *scale, *shift;
  int64_t channel_stride;
  double share;  // 1 / rows
  float eps;
  __device__ void operator()(int64_t c, double sum, double squares) const {
    const double near = sum * share, v = squares * share - near * near;
    mean[c] = static_cast<float>(static_cast<double>(widen(x[c * channel_stride])) + near);
    variance[c] = static_cast<float>(v > 0 ? v : (v == v ? 0.0 : v));
    (*this)(c);
  }
  __device__ void operator()(int64_t c) const {
    scale[c] = (gamma ? gamma[c] : 1.0f) * inverse_of(variance[c], eps);
    shift[c] = beta ? beta[c] : 0.0f;
  }
};

template <class T>
struct Apply {
  ChannelOf channel;
  Act act;
  const T* x;
  const float *mean, *scale, *shift;
  T* y;
  __device__ float value(float v, uint32_t c) const {
    return activate(act, (v - mean[c]) * scale[c] + shift[c]);
  }
  __device__ void single(int64_t i) const { narrow_to(value(widen(x[i]), channel.of(i)), y[i]); }
  __device__ void four(int64_t i) const {
    const uint32_t c = channel.of(i), next = channel.is_nhwc ? 1 : 0;
    Four v = load4(x + i);
    for (uint32_t k = 0; k < 4; ++k) v.v[k] = value(v.v[k], c + k * next);
    store4(y + i, v);
  }
};

/// The gradient before the activation, and its product with the deviation from the mean.
template <class T>
struct GradientSums {
  Act act;
  const T *x, *y, *dy;
  const float* mean;
  __device__ float2 operator()(int64_t at, int64_t c) const {
    const float g = widen(dy[at]) * activation_slope(act, widen(y[at]));
    return make_float2(g, g * (widen(x[at]) - mean[c]));
  }
};

struct BackwardFactors {
  const float *variance, *gamma;
  float *dgamma, *dbeta, *scale, *shift, *slant;
  double share;  // 1 / rows, 0 where the statistics are given
  float eps;
  bool adds_gamma, adds_beta;
  __device__ void operator()(int64_t c, double sum, double product) const {
    const double inverse = inverse_of(variance[c], eps);
    const double factor = inverse * (gamma ? static_cast<double>(gamma[c]) : 1.0);
    if (dgamma) {
      const auto g = static_cast<float>(product * inverse);
      dgamma[c] = adds_gamma ? dgamma[c] + g : g;
    }
    if (dbeta) {
      const auto g = static_cast<float>(sum);
      dbeta[c] = adds_beta ? dbeta[c] + g : g;
    }
    scale[c] = static_cast<float>(factor);
    shift[c] = static_cast<float>(-factor * sum * share);
    slant[c] = static_cast<float>(-factor * inverse * inverse * product * share);
  }
  __device__ void operator()(int64_t c) const { (*this)(c, 0, 0); }
};

template <class T>
struct InputGradient {
  ChannelOf channel;
  Act act;
  const T *x, *y, *dy;
  const float *mean, *scale, *shift, *slant;
  T* dx;
  bool accumulate;
  __device__ float value(float a, float out, float g, uint32_t c) const {
    return scale[c] * (g * activation_slope(act, out)) + (slant[c] * (a - mean[c]) + shift[c]);
  }
  __device__ void single(int64_t i) const {
    const float v = value(widen(x[i]), widen(y[i]), widen(dy[i]), channel.of(i));
    narrow_to(accumulate ? widen(dx[i]) + v : v, dx[i]);
  }
  __device__ void four(int64_t i) const {
    const uint32_t c = channel.of(i), next = channel.is_nhwc ? 1 : 0;
    const Four a = load4(x + i), out = load4(y + i), g = load4(dy + i);
    Four v{};
    if (accumulate) v = load4(dx + i);
    for (uint32_t k = 0; k < 4; ++k) v.v[k] += value(a.v[k], out.v[k], g.v[k], c + k * next);
    store4(dx + i, v);
  }
};

class KernelNormPlan : public NormPlan {
 public:
  KernelNormPlan(CudaOps& ops, const NormDesc& desc) : ops_(ops), desc_(desc) {
    require(desc.x.shape.axes() >= 2, "batch normalisation needs at least two axes, here are ",
            desc.x.shape.axes());
    shape_ = channel_shape(desc.x);
    sums_at_ = parts_.add(channel_sum_bytes(shape_));
    factors_at_ = parts_.add(3 * sizeof(float) * static_cast<size_t>(shape_.channels));
  }

  Needs needs() const override { return {.scratch = parts_.total()}; }

  void bind(const Workspace& workspace) override {
    partial_ = part<Double2>(workspace.scratch, sums_at_);
    scale_ = part<float>(workspace.scratch, factors_at_);
    shift_ = scale_ + shape_.channels;
    slant_ = shift_ + shape_.channels;
  }

  void forward(CTensor x, Tensor mean, Tensor variance, CTensor gamma, CTensor beta,
               Tensor y) override {
    if (desc_.x.count() == 0) return;
    with_float_type(desc_.x.dtype, [&](auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      const auto* in = static_cast<const T*>(x.data);
      auto* out = static_cast<T*>(y.data);
      const ForwardFactors<T> factors{
          in,     gamma.f32(), beta.f32(),       mean.f32(), variance.f32(),
          scale_, shift_,      channel_stride(), share(),    desc_.eps};
      if (desc_.global_stats) {
        for_channels(shape_.channels, factors, ops_.stream());
      } else {
        channel_sums(shape_, Deviations<T>{in, channel_stride()}, factors, partial_, ops_.stream());
      }
      for_elements(Apply<T>{ChannelOf(shape_), desc_.act, in, mean.f32(), scale_, shift_, out},
                   desc_.x.count(), suits_four(in, out), ops_.stream());
    });
  }

  void backward(CTensor x, CTensor y, CTensor mean, CTensor variance, CTensor gamma, CTensor dy,
                Grad dx, Grad dgamma, Grad dbeta) override {
    if (desc_.x.count() == 0) return;
    const BackwardFactors factors{variance.f32(),
                                  gamma.f32(),
                                  dgamma.t.f32(),
                                  dbeta.t.f32(),
                                  scale_,
                                  shift_,
                                  slant_,
                                  desc_.global_stats ? 0.0 : share(),
                                  desc_.eps,
                                  dgamma.how == Write::accumulate,
                                  dbeta.how == Write::accumulate};
    with_float_type(desc_.x.dtype, [&](auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      const auto* in = static_cast<const T*>(x.data);
      const auto* gradient = static_cast<const T*>(dy.data);
      const auto* out = desc_.act.kind == ActKind::none ? gradient : static_cast<const T*>(y.data);
      if (desc_.global_stats && !dgamma && !dbeta) {
        for_channels(shape_.channels, factors, ops_.stream());
      } else {
        channel_sums(shape_, GradientSums<T>{desc_.act, in, out, gradient, mean.f32()}, factors,
                     partial_, ops_.stream());
      }
      if (!dx) return;
      auto* to = static_cast<T*>(dx.t.data);
      for_elements(InputGradient<T>{ChannelOf(shape_), desc_.act, in, out, gradient, mean.f32(),
                                    scale_, shift_, slant_, to, dx.how == Write::accumulate},
                   desc_.x.count(), suits_four(in, out, gradient, to), ops_.stream());
    });
  }

 private:
  /// From one channel's first element to the next's.
  int64_t channel_stride() const { return shape_.is_nhwc ? 1 : shape_.plane; }
  double share() const { return 1.0 / static_cast<double>(shape_.rows()); }
  template <class... Pointers>
  bool suits_four(const Pointers*... pointers) const {
    return ChannelOf::suits_four(shape_) && are_aligned(pointers...);
  }

  CudaOps& ops_;
  NormDesc desc_;
  ChannelShape shape_;
  Parts parts_;
  size_t sums_at_ = 0, factors_at_ = 0;
  Double2* partial_ = nullptr;
  float *scale_ = nullptr, *shift_ = nullptr, *slant_ = nullptr;
};

}  // namespace

std::unique_ptr<NormPlan> CudaOps::plan(const NormDesc& desc) {
  return std::make_unique<KernelNormPlan>(*this, desc);
}

}  // namespace crema::cuda
