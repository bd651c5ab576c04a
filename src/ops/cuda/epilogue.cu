// Bias, residual sum and activation in one pass, and the bias's gradient.
#include "ops/cuda/act.h"
#include "ops/cuda/channel.h"
#include "ops/cuda/channel_sums.h"
#include "ops/cuda/epilogue.h"
#include "ops/small_floats.h"

namespace crema::cuda {
namespace {

__device__ inline float get(float v) { return v; }
__device__ inline float get(F16 v) { return widen(v); }
__device__ inline float get(Bf16 v) { return widen(v); }
__device__ inline void put(float v, float& to) { to = v; }
__device__ inline void put(float v, F16& to) { to = narrow_f16(v); }
__device__ inline void put(float v, Bf16& to) { to = narrow_bf16(v); }

template <class T>
struct alignas(4 * sizeof(T)) FourOf {
  T v[4];
};

template <class T>
struct Epilogue {
  ChannelOf channel;
  Act act;
  const float* bias;
  const T* residual;
  T* y;
  __device__ void one(T& to, float other, uint32_t c) const {
    put(activate(act, get(to) + (bias ? bias[c] : 0.0f) + other), to);
  }
  __device__ void single(int64_t i) const {
    one(y[i], residual ? get(residual[i]) : 0.0f, channel.of(i));
  }
  __device__ void four(int64_t i) const {
    const uint32_t c = channel.of(i), next = channel.is_nhwc ? 1 : 0;
    auto& to = *reinterpret_cast<FourOf<T>*>(y + i);
    FourOf<T> values = to, others = to;
    if (residual) others = *reinterpret_cast<const FourOf<T>*>(residual + i);
    for (uint32_t k = 0; k < 4; ++k) {
      one(values.v[k], residual ? get(others.v[k]) : 0.0f, c + k * next);
    }
    to = values;
  }
};

template <class T>
void run(const Tensor& y, const CTensor& bias, const CTensor& residual, const Act& act,
         cudaStream_t stream) {
  const ChannelShape shape = channel_shape(y.desc);
  const auto* other = static_cast<const T*>(residual.data);
  auto* to = static_cast<T*>(y.data);
  for_elements(Epilogue<T>{ChannelOf(shape), act, bias.f32(), other, to}, y.count(),
               ChannelOf::suits_four(shape) && are_aligned(to, other), stream);
}

template <class T>
struct BiasSum {
  const T* dy;
  __device__ float2 operator()(int64_t at, int64_t) const { return make_float2(get(dy[at]), 0); }
};

struct BiasDone {
  float* db;
  bool accumulate;
  __device__ void operator()(int64_t c, double sum, double) const {
    const auto g = static_cast<float>(sum);
    db[c] = accumulate ? db[c] + g : g;
  }
};

template <class T>
void sum_bias(const CTensor& dy, const Grad& db, Double2* partial, cudaStream_t stream) {
  channel_sums(channel_shape(dy.desc), BiasSum<T>{static_cast<const T*>(dy.data)},
               BiasDone{db.t.f32(), db.how == Write::accumulate}, partial, stream);
}

}  // namespace

void add_bias_and_activate(const Tensor& y, const CTensor& bias, const CTensor& residual,
                           const Act& act, cudaStream_t stream) {
  if (y.desc.dtype == DType::f16) return run<F16>(y, bias, residual, act, stream);
  if (y.desc.dtype == DType::bf16) return run<Bf16>(y, bias, residual, act, stream);
  run<float>(y, bias, residual, act, stream);
}

size_t bias_gradient_bytes(const TensorDesc& dy) { return channel_sum_bytes(channel_shape(dy)); }

void bias_gradient(const CTensor& dy, const Grad& db, void* scratch, cudaStream_t stream) {
  auto* partial = static_cast<Double2*>(scratch);
  if (dy.desc.dtype == DType::f16) return sum_bias<F16>(dy, db, partial, stream);
  if (dy.desc.dtype == DType::bf16) return sum_bias<Bf16>(dy, db, partial, stream);
  sum_bias<float>(dy, db, partial, stream);
}

}  // namespace crema::cuda
