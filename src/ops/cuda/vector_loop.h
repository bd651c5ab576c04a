// Loops over elements with 16-byte accesses: where all pointers are aligned each index does four
// f32 elements.
#pragma once

#include "base/dtype.h"
#include "ops/cuda/launch.h"
#include "ops/small_floats.h"

namespace crema::cuda {

constexpr int kVectorThreads = 256;

struct Four {
  float v[4];
};

__device__ inline Four load4(const float* from) {
  const float4 v = *reinterpret_cast<const float4*>(from);
  return {{v.x, v.y, v.z, v.w}};
}

__device__ inline void store4(float* to, const Four& f) {
  *reinterpret_cast<float4*>(to) = make_float4(f.v[0], f.v[1], f.v[2], f.v[3]);
}

/// The same of 16-bit floats, which are computed with as f32.
template <class T>
struct alignas(4 * sizeof(T)) FourLow {
  T v[4];
};

template <class T>
__device__ inline Four load4(const T* from) {
  const auto low = *reinterpret_cast<const FourLow<T>*>(from);
  return {{widen(low.v[0]), widen(low.v[1]), widen(low.v[2]), widen(low.v[3])}};
}

template <class T>
__device__ inline void store4(T* to, const Four& f) {
  FourLow<T> low;
  for (int k = 0; k < 4; ++k) narrow_to(f.v[k], low.v[k]);
  *reinterpret_cast<FourLow<T>*>(to) = low;
}

/// Calls action with a null pointer of a float type; other types are f32.
template <class Action>
void with_float_type(DType dtype, const Action& action) {
  if (dtype == DType::bf16) return action(static_cast<Bf16*>(nullptr));
  if (dtype == DType::f16) return action(static_cast<F16*>(nullptr));
  action(static_cast<float*>(nullptr));
}

/// F has single(i) for element i and four(i) for elements i to i + 3.
template <class F>
__global__ void __launch_bounds__(kVectorThreads) vector_loop(F f, int64_t n, bool is_aligned) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  const int64_t first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t fours = is_aligned ? n / 4 : 0;
  for (int64_t i = first; i < fours; i += step) f.four(4 * i);
  for (int64_t i = 4 * fours + first; i < n; i += step) f.single(i);
}

template <class... Pointers>
bool are_aligned(const Pointers*... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...);
}

template <class F>
void for_elements(const F& f, int64_t n, bool is_aligned, cudaStream_t stream) {
  const int64_t indices = is_aligned ? (n + 3) / 4 : n;
  launch(vector_loop<F>, blocks_for(indices, kVectorThreads), kVectorThreads, 0, stream, f, n,
         is_aligned);
}

}  // namespace crema::cuda
