// Unary formulas, adding and filling.
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/fill_other.h"
#include "ops/cuda/step_slot.h"
#include "ops/cuda/vector_loop.h"
#include "ops/unary_formula.h"

namespace crema::cuda {
namespace {

template <class Formula, class T>
struct Forward {
  Formula f;
  const T* x;
  T* y;
  __device__ void single(int64_t i) const { narrow_to(f(widen(x[i])), y[i]); }
  __device__ void four(int64_t i) const {
    Four v = load4(x + i);
    for (float& e : v.v) e = f(e);
    store4(y + i, v);
  }
};

template <class Formula, class T>
struct Backward {
  Formula f;
  const T *x, *y, *dy;
  T* dx;
  bool accumulate;
  __device__ void single(int64_t i) const {
    const float g = widen(dy[i]) * f.gradient(widen(x[i]), widen(y[i]));
    narrow_to(accumulate ? widen(dx[i]) + g : g, dx[i]);
  }
  __device__ void four(int64_t i) const {
    const Four a = load4(x + i), b = load4(y + i);
    Four g = load4(dy + i);
    for (int k = 0; k < 4; ++k) g.v[k] *= f.gradient(a.v[k], b.v[k]);
    if (accumulate) {
      const Four before = load4(dx + i);
      for (int k = 0; k < 4; ++k) g.v[k] += before.v[k];
    }
    store4(dx + i, g);
  }
};

template <class T>
struct AddTo {
  const T* src;
  T* dst;
  __device__ void single(int64_t i) const { narrow_to(widen(dst[i]) + widen(src[i]), dst[i]); }
  __device__ void four(int64_t i) const {
    const Four a = load4(src + i);
    Four b = load4(dst + i);
    for (int k = 0; k < 4; ++k) b.v[k] += a.v[k];
    store4(dst + i, b);
  }
};

struct FillWith {
  float value;
  float* dst;
  __device__ void single(int64_t i) const { dst[i] = value; }
  __device__ void four(int64_t i) const { store4(dst + i, {{value, value, value, value}}); }
};

__global__ void step_kernel(StepScalars step, StepScalars* to) { *to = step; }

}  // namespace

void store_step(const StepScalars& step, StepScalars* to, cudaStream_t stream) {
  launch(step_kernel, 1, 1, 0, stream, step, to);
}

void CudaOps::unary(Unary kind, UnaryArgs args, CTensor x, Tensor y) {
  with_float_type(y.desc.dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const auto* from = static_cast<const T*>(x.data);
    auto* to = static_cast<T*>(y.data);
    with_formula(kind, args, [&](const auto& f) {
      using Formula = std::decay_t<decltype(f)>;
      for_elements(Forward<Formula, T>{f, from, to}, y.count(), are_aligned(from, to), stream());
    });
  });
}

void CudaOps::unary_backward(Unary kind, UnaryArgs args, CTensor x, CTensor y, CTensor dy,
                             Grad dx) {
  if (!dx) return;
  // Whichever is missing is not read by the formula, or has the same sign (relu).
  with_float_type(dx.t.desc.dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const auto* in = static_cast<const T*>(x ? x.data : y.data);
    const auto* out = y ? static_cast<const T*>(y.data) : in;
    const auto* gradient = static_cast<const T*>(dy.data);
    auto* to = static_cast<T*>(dx.t.data);
    const bool is_aligned = are_aligned(in, out, gradient, to);
    with_formula(kind, args, [&](const auto& f) {
      using Formula = std::decay_t<decltype(f)>;
      for_elements(Backward<Formula, T>{f, in, out, gradient, to, dx.how == Write::accumulate},
                   dx.t.count(), is_aligned, stream());
    });
  });
}

void CudaOps::add(CTensor src, Tensor dst) {
  with_float_type(dst.desc.dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const auto* from = static_cast<const T*>(src.data);
    auto* to = static_cast<T*>(dst.data);
    for_elements(AddTo<T>{from, to}, dst.count(), are_aligned(from, to), stream());
  });
}

void CudaOps::fill(float value, Tensor dst) {
  if (dst.desc.dtype == DType::f32) {
    return for_elements(FillWith{value, dst.f32()}, dst.count(), are_aligned(dst.f32()), stream());
  }
  fill_other(value, dst, stream());
}

}  // namespace crema::cuda
