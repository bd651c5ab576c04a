// What the simulated device's own tests share: violations kept and looked at, memory with owners.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cuda_runtime.h"
#include "cuda_sim/control.h"

namespace crema::cuda_sim {

/// Keeps violations during a test; what is left at its end fails it.
class SimTest : public testing::Test {
 protected:
  void SetUp() override {
    keep_violations(true);
    take_violations();
    set_seed(0);
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  void TearDown() override {
    cudaStreamDestroy(stream_);
    for (const std::string& text : take_violations()) ADD_FAILURE() << "left over: " << text;
    for (float* memory : memory_) cudaFree(memory);
    keep_violations(false);
  }

  /// Device memory with these values.
  float* device(const std::vector<float>& values) {
    float* memory = unwritten(values.size());
    EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(memory, values.data(), values.size() * sizeof(float),
                                           cudaMemcpyHostToDevice, stream_));
    return memory;
  }
  /// Device memory that nobody wrote to.
  float* unwritten(size_t count) {
    float* memory = nullptr;
    EXPECT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&memory), count * sizeof(float)));
    memory_.push_back(memory);
    return memory;
  }
  std::vector<float> host(const float* memory, size_t count, cudaStream_t stream = nullptr) {
    std::vector<float> values(count);
    EXPECT_EQ(cudaSuccess,
              cudaMemcpyAsync(values.data(), memory, count * sizeof(float), cudaMemcpyDeviceToHost,
                              stream == nullptr ? stream_ : stream));
    return values;
  }
  /// Runs the stream; exactly one violation, with this text in it, has come since the last look.
  void expect_violation(const std::string& text) {
    EXPECT_EQ(cudaErrorLaunchFailure, cudaStreamSynchronize(stream_));
    const std::vector<std::string> taken = take_violations();
    ASSERT_EQ(taken.size(), 1u) << "violations";
    EXPECT_NE(taken[0].find(text), std::string::npos) << taken[0];
  }

  cudaStream_t stream_ = nullptr;
  std::vector<float*> memory_;
};

}  // namespace crema::cuda_sim
