// Device memory: what only device code may touch, red zones, freed and unwritten memory, copies.
#include "cuda_sim/selftest/sim_testing.h"

namespace crema::cuda_sim {
namespace {

using Memory = SimTest;
using MemoryDeathTest = SimTest;

__global__ void store(float* to, int index, float value) { to[index] = value; }
__global__ void load(const float* from, int64_t index, float* to) { *to = from[index]; }
struct Pair {
  const float* x;
  float* y;
  bool flag;
};
__global__ void copy_pair(Pair pair) { *pair.y = *pair.x; }

template <class... Params, class... Args>
void launch_one(void (*kernel)(Params...), cudaStream_t stream, Args... args) {
  ASSERT_EQ(cudaSuccess, launch_kernel(kernel, dim3(1), dim3(1), 0, stream, args...));
}

TEST_F(Memory, CopiesThereAndBack) {
  const std::vector<float> values = {1, 2, 3};
  EXPECT_EQ(host(device(values), 3), values);
}

TEST_F(MemoryDeathTest, HostCodeMustNotTouchIt) {
  float* memory = device({1});
  cudaStreamSynchronize(stream_);
  EXPECT_DEATH(memory[0] = 2, "device memory was touched by host code");
  EXPECT_DEATH(std::printf("%g", static_cast<double>(memory[0])), "touched by host code");
}

TEST_F(MemoryDeathTest, AKernelFarOutsideEndsTheProgram) {
  float* memory = device({1});
  const auto go = [&](int index) {
    launch_one(store, stream_, memory, index, 1.0f);
    cudaStreamSynchronize(stream_);
  };
  EXPECT_DEATH(go(4096), "outside every allocation");
  EXPECT_DEATH(go(-1024), "outside every allocation");
  EXPECT_DEATH(go(-2000000000), "no device memory|outside every allocation");
}

TEST_F(MemoryDeathTest, WithoutKeepingAViolationEndsTheProgram) {
  keep_violations(false);
  float* memory = device({1});
  EXPECT_DEATH(
      {
        launch_one(store, stream_, memory, 1, 1.0f);
        cudaStreamSynchronize(stream_);
      },
      "wrote outside an allocation of 4 bytes");
  keep_violations(true);
}

TEST_F(Memory, ARedZoneShowsAWriteOneBeyond) {
  float* memory = device({1, 2, 3});
  launch_one(store, stream_, memory, 3, 1.0f);
  expect_violation("wrote outside an allocation of 12 bytes");
  launch_one(store, stream_, memory, -1, 1.0f);
  expect_violation("wrote outside an allocation of 12 bytes");
}

TEST_F(Memory, AReadBeforeAnyWriteShowsAsNaN) {
  float* memory = unwritten(2);
  float* to = device({0});
  launch_one(load, stream_, memory, int64_t{1}, to);
  std::vector<float> seen(1);
  EXPECT_EQ(cudaErrorLaunchFailure,
            cudaMemcpyAsync(seen.data(), to, sizeof(float), cudaMemcpyDeviceToHost, stream_));
  expect_violation("a copy's source holds memory that was never written");
}

TEST_F(Memory, ACopyBeyondTheEndIsShown) {
  float* memory = device({1, 2});
  float* to = unwritten(4);
  EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(to, memory, 12, cudaMemcpyDeviceToDevice, stream_));
  expect_violation("a copy's source reaches 4 bytes beyond");
  EXPECT_EQ(cudaSuccess, cudaMemsetAsync(memory, 0, 9, stream_));
  expect_violation("a fill's destination reaches 1 bytes beyond");
}

TEST_F(Memory, ACopyOntoItselfIsShown) {
  float* memory = device({1, 2, 3});
  EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(memory, memory + 1, 8, cudaMemcpyDefault, stream_));
  expect_violation("source and destination overlap");
}

TEST_F(Memory, FreedMemoryIsShown) {
  float* memory = nullptr;
  ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&memory), 4));
  ASSERT_EQ(cudaSuccess, cudaFree(memory));
  EXPECT_EQ(cudaSuccess, cudaMemsetAsync(memory, 0, 4, stream_));
  expect_violation("a fill's destination was freed");
  launch_one(store, stream_, memory, 0, 1.0f);
  expect_violation("argument 0 points into freed memory");
  launch_one(copy_pair, stream_, Pair{memory, device({0}), true});
  expect_violation("argument 0, byte 0 points into freed memory");
  EXPECT_EQ(cudaErrorInvalidValue, cudaFree(memory));
  expect_violation("freed before");
}

TEST_F(Memory, HostAddressesInAKernelAreShown) {
  float on_stack = 0;
  launch_one(store, stream_, &on_stack, 0, 1.0f);
  expect_violation("argument 0 is a host address");
  const std::vector<float> on_heap = {1};
  launch_one(copy_pair, stream_, Pair{on_heap.data(), device({0}), true});
  expect_violation("argument 0, byte 0 is a host address");
}

TEST_F(Memory, NumbersInAKernelsStructAreNotAddresses) {
  struct Numbers {
    float* to;
    int64_t count;
    float a, b;
    int c, d;
    bool flag;
  };
  launch_one(
      +[](Numbers n) { *n.to = n.a + static_cast<float>(n.count); }, stream_,
      Numbers{device({0}), int64_t{1} << 40, 1.5f, 1e-40f, 4096, 21845, true});
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
}

TEST_F(Memory, CopiesRefuseAWrongDirection) {
  float* memory = device({1});
  float value = 0;
  EXPECT_EQ(cudaErrorInvalidValue,
            cudaMemcpyAsync(memory, &value, 4, cudaMemcpyDeviceToHost, stream_));
  EXPECT_EQ(cudaErrorInvalidValue,
            cudaMemcpyAsync(&value, memory, 4, cudaMemcpyDeviceToDevice, stream_));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemcpyAsync(nullptr, memory, 4, cudaMemcpyDefault, stream_));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemsetAsync(&value, 0, 4, stream_));
}

TEST_F(Memory, ErrorsAreKeptUntilTheyAreTaken) {
  float value = 0;
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemsetAsync(&value, 0, 4, stream_));
  EXPECT_EQ(cudaErrorInvalidValue, cudaPeekAtLastError());
  EXPECT_EQ(cudaErrorInvalidValue, cudaGetLastError());
  EXPECT_EQ(cudaSuccess, cudaGetLastError());
  EXPECT_STREQ("cudaErrorInvalidValue", cudaGetErrorName(cudaErrorInvalidValue));
}

TEST_F(Memory, AFullCardIsAnError) {
  set_card_memory(1 << 20);
  size_t available = 0, total = 0;
  void* memory = nullptr;
  EXPECT_EQ(cudaErrorMemoryAllocation, cudaMalloc(&memory, (1 << 20) + 1));
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(cudaSuccess, cudaMalloc(&memory, 1 << 19));
  EXPECT_EQ(cudaSuccess, cudaMemGetInfo(&available, &total));
  EXPECT_EQ(total - available, size_t{1} << 19);
  EXPECT_EQ(cudaSuccess, cudaFree(memory));
  set_card_memory(size_t{4} << 30);
  cudaGetLastError();
}

TEST_F(Memory, PinnedMemoryIsReadLate) {
  float* pinned = nullptr;
  ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&pinned), 4));
  pinned[0] = 1;
  float* memory = unwritten(1);
  EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(memory, pinned, 4, cudaMemcpyDefault, stream_));
  pinned[0] = 2;  // too early: the copy has not run
  EXPECT_EQ(host(memory, 1), std::vector<float>{2});
  EXPECT_EQ(cudaSuccess, cudaFreeHost(pinned));
}

TEST_F(Memory, PageableMemoryIsReadAtOnce) {
  float value = 1;
  float* memory = unwritten(1);
  EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(memory, &value, 4, cudaMemcpyDefault, stream_));
  value = 2;
  EXPECT_EQ(host(memory, 1), std::vector<float>{1});
}

}  // namespace
}  // namespace crema::cuda_sim
