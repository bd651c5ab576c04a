// Kernels: grids, blocks whose threads cooperate, and what they must not do.
#include "cuda_sim/selftest/sim_testing.h"

namespace crema::cuda_sim {
namespace {

using Kernels = SimTest;

__global__ void where(float* to) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  to[block * blockDim.x * blockDim.y * blockDim.z + thread] =
      static_cast<float>(100 * block + thread);
}

__global__ void block_sum(const float* x, float* y) {
  __shared__ float parts[64];
  parts[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  for (unsigned step = 32; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step) parts[threadIdx.x] += parts[threadIdx.x + step];
  }
  if (threadIdx.x == 0) y[blockIdx.x] = parts[0];
}

__global__ void block_sum_without_waiting(const float* x, float* y) {
  __shared__ float parts[64];
  parts[threadIdx.x] = x[threadIdx.x];
  for (unsigned step = 32; step > 0; step /= 2) {
    if (threadIdx.x < step) parts[threadIdx.x] += parts[threadIdx.x + step];
  }
  __syncthreads();
  if (threadIdx.x == 0) *y = parts[0];
}

__global__ void warp_sums(const float* x, float* y) {
  float sum = x[threadIdx.x];
  for (int flip = 16; flip > 0; flip /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, flip);
  float down = x[threadIdx.x];
  for (unsigned step = 16; step > 0; step /= 2) down += __shfl_down_sync(0xffffffffu, down, step);
  const unsigned odd = __ballot_sync(0xffffffffu, (threadIdx.x & 1u) != 0);
  if (threadIdx.x % 32 == 0) {
    y[threadIdx.x / 32 * 3] = sum;
    y[threadIdx.x / 32 * 3 + 1] = down;
    y[threadIdx.x / 32 * 3 + 2] = odd == 0xaaaaaaaau ? 1 : 0;
  }
}

__global__ void atomics(float* sum, int* most, unsigned* claimed) {
  atomicAdd(sum, 1.5f);
  atomicMax(most, static_cast<int>(threadIdx.x * 7 % 13));
  atomicCAS(claimed, 0u, 5u);
}

__global__ void shared_of_launch(float* y) {
  float* shared = static_cast<float*>(dynamic_shared_memory());
  shared[threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncthreads();
  y[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}
__global__ void unwritten_shared(float* y) {
  *y = static_cast<float*>(dynamic_shared_memory())[threadIdx.x];
}

__global__ void half_waits(float*) {
  if (threadIdx.x < 16) return;
  __syncthreads();
}
__global__ void waits_at_two_places(float*) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
__global__ void shuffle_without_some(float* y) {
  if (threadIdx.x < 16) *y = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
}
__global__ void shuffle_outside_its_mask(float* y) { *y = __shfl_xor_sync(0x0000ffffu, 1.0f, 1); }

TEST_F(Kernels, KnowTheirPlace) {
  float* to = unwritten(2 * 1 * 2 * 6);
  EXPECT_EQ(cudaSuccess, launch_kernel(where, dim3(2, 1, 2), dim3(3, 2, 1), 0, stream_, to));
  const std::vector<float> seen = host(to, 24);
  for (size_t block = 0; block < 4; ++block) {
    for (size_t thread = 0; thread < 6; ++thread) {
      EXPECT_EQ(seen[block * 6 + thread], static_cast<float>(100 * block + thread));
    }
  }
}

TEST_F(Kernels, ThreadsOfABlockCooperate) {
  std::vector<float> values;
  for (int i = 0; i < 128; ++i) values.push_back(static_cast<float>(i));
  float* y = unwritten(2);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(cudaSuccess,
              launch_kernel(block_sum, dim3(2), dim3(64), 0, stream_, device(values), y));
    EXPECT_EQ(host(y, 2), (std::vector<float>{2016, 6112}));
  }
}

TEST_F(Kernels, AMissingBarrierShows) {
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(static_cast<float>(i));
  float* x = device(values);
  int wrong = 0;
  for (int i = 0; i < 8; ++i) {
    float* y = unwritten(1);
    launch_kernel(block_sum_without_waiting, dim3(1), dim3(64), 0, stream_, x, y);
    wrong += host(y, 1)[0] != 2016 ? 1 : 0;
  }
  EXPECT_GT(wrong, 0);
}

TEST_F(Kernels, WarpsExchange) {
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(static_cast<float>(i));
  float* y = unwritten(6);
  for (int i = 0; i < 4; ++i) {
    launch_kernel(warp_sums, dim3(1), dim3(64), 0, stream_, device(values), y);
    EXPECT_EQ(host(y, 6), (std::vector<float>{496, 496, 1, 1520, 1520, 1}));
  }
}

TEST_F(Kernels, AtomicsCount) {
  float* sum = device({0});
  float* others = device({0, 0});
  launch_kernel(atomics, dim3(2), dim3(20), 0, stream_, sum, reinterpret_cast<int*>(others),
                reinterpret_cast<unsigned*>(others + 1));
  EXPECT_EQ(host(sum, 1), std::vector<float>{60});
  const std::vector<float> bits = host(others, 2);
  EXPECT_EQ(__float_as_int(bits[0]), 12);
  EXPECT_EQ(__float_as_int(bits[1]), 5);
}

TEST_F(Kernels, DynamicSharedMemoryBelongsToTheBlock) {
  float* y = unwritten(4);
  EXPECT_EQ(cudaSuccess, launch_kernel(shared_of_launch, dim3(3), dim3(4), 16, stream_, y));
  EXPECT_EQ(host(y, 4), (std::vector<float>{3, 2, 1, 0}));
  launch_kernel(unwritten_shared, dim3(1), dim3(1), 16, stream_, y);
  std::vector<float> seen(1);
  EXPECT_EQ(cudaErrorLaunchFailure, cudaMemcpyAsync(seen.data(), y, 4, cudaMemcpyDefault, stream_));
  expect_violation("never written");
}

TEST_F(Kernels, LaunchesThatACardRefuses) {
  float* y = device({0});
  const auto launch = [&](dim3 grid, dim3 block, size_t shared) {
    return launch_kernel(where, grid, block, shared, stream_, y);
  };
  EXPECT_EQ(cudaErrorInvalidConfiguration, launch(dim3(0), dim3(1), 0));
  EXPECT_EQ(cudaErrorInvalidConfiguration, launch(dim3(1), dim3(1025), 0));
  EXPECT_EQ(cudaErrorInvalidConfiguration, launch(dim3(1), dim3(32, 33), 0));
  EXPECT_EQ(cudaErrorInvalidConfiguration, launch(dim3(1), dim3(1, 1, 65), 0));
  EXPECT_EQ(cudaErrorInvalidConfiguration, launch(dim3(1, 65536), dim3(1), 0));
  EXPECT_EQ(cudaErrorInvalidValue, launch(dim3(1), dim3(1), (48 << 10) + 1));
  const auto* function = reinterpret_cast<const void*>(where);
  const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  EXPECT_EQ(cudaErrorInvalidValue, cudaFuncSetAttribute(function, attribute, (227 << 10) + 1));
  EXPECT_EQ(cudaSuccess, cudaFuncSetAttribute(function, attribute, 64 << 10));
  EXPECT_EQ(cudaSuccess, launch(dim3(1), dim3(1), 64 << 10));
  EXPECT_EQ(cudaErrorInvalidValue, launch(dim3(1), dim3(1), (64 << 10) + 1));
}

TEST_F(Kernels, BarriersThatNotAllReachAreShown) {
  float* y = device({0});
  launch_kernel(half_waits, dim3(1), dim3(32), 0, stream_, y);
  expect_violation("others have ended");
  launch_kernel(waits_at_two_places, dim3(1), dim3(64), 0, stream_, y);
  expect_violation("wait for each other at __syncthreads");
  launch_kernel(shuffle_without_some, dim3(1), dim3(32), 0, stream_, y);
  expect_violation("a shuffle");
  launch_kernel(shuffle_outside_its_mask, dim3(1), dim3(32), 0, stream_, y);
  expect_violation("not in the mask");
  launch_kernel(block_sum, dim3(1), dim3(64), 0, stream_, device(std::vector<float>(64, 1)), y);
  EXPECT_EQ(host(y, 1), std::vector<float>{64}) << "the device works again";
}

}  // namespace
}  // namespace crema::cuda_sim
