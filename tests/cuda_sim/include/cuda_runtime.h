// Stands in for CUDA's cuda_runtime.h when a kernel source is compiled for the simulated device:
// the real headers' types and function names, and what nvcc would have given as plain C++. Threads
// of a block run one after the other on one processor, so atomics are plain reads and writes.
#pragma once

#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __constant__ static
#define __launch_bounds__(...)

#define threadIdx (::crema::cuda_sim::place().thread)
#define blockIdx (::crema::cuda_sim::place().block)
#define blockDim (::crema::cuda_sim::place().block_size)
#define gridDim (::crema::cuda_sim::place().grid_size)
#define warpSize 32

namespace crema::cuda_sim {

/// Where the running thread stands.
struct Place {
  uint3 thread, block;
  dim3 block_size, grid_size;
};
extern Place running_place;
inline const Place& place() { return running_place; }

/// Enqueues a kernel; body is one thread of it. cudaErrorInvalidConfiguration or
/// cudaErrorInvalidValue where the card would refuse the launch.
cudaError_t launch_kernel(dim3 grid, dim3 block, size_t dynamic_shared_bytes, cudaStream_t stream,
                          std::function<void()> body);

/// The same for a kernel with arguments, whose pointers are looked at before it runs: a host
/// address, or one of freed memory, ends the program with a line that says so.
template <class... Params, class... Args>
cudaError_t launch_kernel(void (*kernel)(Params...), dim3 grid, dim3 block,
                          size_t dynamic_shared_bytes, cudaStream_t stream, const Args&... args);

/// The running block's dynamic shared memory, 16-byte aligned.
void* dynamic_shared_memory();

/// What the running thread waits for; wait() returns when the others have come.
enum class Gathering : uint8_t { block, warp, shuffle, ballot };
/// Waits for the whole block.
void sync_block(int line);
/// Waits for the lanes of mask, which all bring a value. The result holds what lane i brought at i.
const uint64_t* exchange(Gathering kind, unsigned mask, uint64_t value, int line);

inline int lane() {
  const Place& p = place();
  return static_cast<int>(
      (p.thread.x + p.block_size.x * (p.thread.y + p.block_size.y * p.thread.z)) % 32);
}

/// value of lane `source` of the own section of `width` lanes; the own value where that lane lies
/// outside.
template <class T>
T shuffle(unsigned mask, T value, int source, int width, int line) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  const uint64_t* all = exchange(Gathering::shuffle, mask, bits, line);
  const int own = lane(), begin = own / width * width;
  const bool inside = source >= begin && source < begin + width;
  std::memcpy(&value, &all[inside ? source : own], sizeof(T));
  return value;
}

template <class T>
T atomic_change(T* address, T value) {
  const T former = *address;
  *address = value;
  return former;
}

}  // namespace crema::cuda_sim

inline void __syncthreads(int line = __builtin_LINE()) { crema::cuda_sim::sync_block(line); }
inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
  crema::cuda_sim::exchange(crema::cuda_sim::Gathering::warp, mask, 0, line);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, int line = __builtin_LINE()) {
  const int begin = crema::cuda_sim::lane() / width * width;
  return crema::cuda_sim::shuffle(mask, value, begin + source % width, width, line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32, int line = __builtin_LINE()) {
  return crema::cuda_sim::shuffle(mask, value, crema::cuda_sim::lane() ^ flip, width, line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned step, int width = 32,
                   int line = __builtin_LINE()) {
  return crema::cuda_sim::shuffle(mask, value, crema::cuda_sim::lane() + static_cast<int>(step),
                                  width, line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned step, int width = 32,
                 int line = __builtin_LINE()) {
  return crema::cuda_sim::shuffle(mask, value, crema::cuda_sim::lane() - static_cast<int>(step),
                                  width, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  const uint64_t* all = crema::cuda_sim::exchange(crema::cuda_sim::Gathering::ballot, mask,
                                                  predicate != 0 ? 1 : 0, line);
  unsigned result = 0;
  for (unsigned i = 0; i < 32; ++i) {
    if ((mask >> i & 1u) != 0 && all[i] != 0) result |= 1u << i;
  }
  return result;
}
inline int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return __ballot_sync(mask, predicate, line) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return __ballot_sync(mask, predicate, line) == mask ? 1 : 0;
}

template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return crema::cuda_sim::atomic_change(address, static_cast<T>(*address + value));
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return crema::cuda_sim::atomic_change(address, *address < value ? value : *address);
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return crema::cuda_sim::atomic_change(address, value < *address ? value : *address);
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return crema::cuda_sim::atomic_change(address, static_cast<T>(value));
}
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return crema::cuda_sim::atomic_change(address, *address == expected ? value : *address);
}

template <class T>
T __ldg(const T* address) {
  return *address;
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline int __float_as_int(float x) {
  int bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline float __int_as_float(int bits) {
  float x = 0;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}
inline unsigned __float_as_uint(float x) { return static_cast<unsigned>(__float_as_int(x)); }
inline float __uint_as_float(unsigned bits) { return __int_as_float(static_cast<int>(bits)); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }

#include "cuda_sim/arguments.h"
