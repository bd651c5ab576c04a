// Sums within warps and blocks, always in the same order: the same bits each run.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace crema::cuda {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;
constexpr int64_t kMostBlocks = int64_t{1} << 30;

/// Every lane gets the sum.
template <class T>
__device__ T warp_sum(T value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(kAllLanes, value, step);
  return value;
}

template <class T>
__device__ T warp_max(T value) {
  for (int step = 16; step > 0; step /= 2) {
    const T other = __shfl_xor_sync(kAllLanes, value, step);
    value = other > value ? other : value;
  }
  return value;
}

/// The sum over a block of kThreads threads (a multiple of 32); every thread gets it. All threads
/// must call.
template <int kThreads, class T>
__device__ T block_sum(T value) {
  __shared__ T warps[kThreads / 32];
  value = warp_sum(value);
  __syncthreads();  // a former call may still read
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  T sum = 0;
  for (int w = 0; w < kThreads / 32; ++w) sum += warps[w];
  return sum;
}

template <int kThreads, class T>
__device__ T block_max(T value) {
  __shared__ T warps[kThreads / 32];
  value = warp_max(value);
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  T best = warps[0];
  for (int w = 1; w < kThreads / 32; ++w) best = warps[w] > best ? warps[w] : best;
  return best;
}

/// How a row of cols elements is cut: at most kMostSegments pieces, by the length alone.
struct Segments {
  int64_t segment;
  int count;
};
inline Segments split_row(int64_t cols) {
  constexpr int64_t kLeast = 16384, kMostSegments = 1024;
  const int64_t wanted = (cols + kMostSegments - 1) / kMostSegments;
  const int64_t segment = wanted > kLeast ? wanted : kLeast;
  return {segment, static_cast<int>((cols + segment - 1) / segment)};
}

}  // namespace crema::cuda
