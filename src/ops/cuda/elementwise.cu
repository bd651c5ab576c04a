// Unary formulas, adding and filling.
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/fill_other.h"
#include "ops/cuda/step_slot.h"
#include "ops/cuda/vector_loop.h"
#include "ops/unary_formula.h"

namespace crema::cuda {
namespace {

template <class Formula>
struct Forward {
  Formula f;
  const float* x;
  float* y;
  __device__ void single(int64_t i) const { y[i] = f(x[i]); }
  __device__ void four(int64_t i) const {
    Four v = load4(x + i);
    for (float& e : v.v) e = f(e);
    store4(y + i, v);
  }
};

template <class Formula>
struct Backward {
  Formula f;
  const float *x, *y, *dy;
  float* dx;
  bool accumulate;
  __device__ void single(int64_t i) const {
    const float g = dy[i] * f.gradient(x[i], y[i]);
    dx[i] = accumulate ? dx[i] + g : g;
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

struct AddTo {
  const float* src;
  float* dst;
  __device__ void single(int64_t i) const { dst[i] += src[i]; }
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
  const float* from = x.f32();
  float* to = y.f32();
  with_formula(kind, args, [&](const auto& f) {
    using Formula = std::decay_t<decltype(f)>;
    for_elements(Forward<Formula>{f, from, to}, y.count(), are_aligned(from, to), stream());
  });
}

void CudaOps::unary_backward(Unary kind, UnaryArgs args, CTensor x, CTensor y, CTensor dy,
                             Grad dx) {
  if (!dx) return;
  // Whichever is missing is not read by the formula, or has the same sign (relu).
  const float* in = x ? x.f32() : y.f32();
  const float* out = y ? y.f32() : in;
  float* to = dx.t.f32();
  const bool is_aligned = are_aligned(in, out, dy.f32(), to);
  with_formula(kind, args, [&](const auto& f) {
    using Formula = std::decay_t<decltype(f)>;
    for_elements(Backward<Formula>{f, in, out, dy.f32(), to, dx.how == Write::accumulate},
                 dx.t.count(), is_aligned, stream());
  });
}

void CudaOps::add(CTensor src, Tensor dst) {
  for_elements(AddTo{src.f32(), dst.f32()}, dst.count(), are_aligned(src.f32(), dst.f32()),
               stream());
}

void CudaOps::fill(float value, Tensor dst) {
  if (dst.desc.dtype == DType::f32) {
    return for_elements(FillWith{value, dst.f32()}, dst.count(), are_aligned(dst.f32()), stream());
  }
  fill_other(value, dst, stream());
}

}  // namespace crema::cuda
