// Streams, events and graphs: late, in an order that only waits decide, and what capture forbids.
#include <set>
#include <thread>

#include "cuda_sim/selftest/sim_testing.h"

namespace crema::cuda_sim {
namespace {

__global__ void store(float* to, float value) { *to = value; }
__global__ void append(float* list, float* count, float value) {
  list[static_cast<int>(*count)] = value;
  *count += 1;
}

class Streams : public SimTest {
 protected:
  void SetUp() override {
    SimTest::SetUp();
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking));
    ASSERT_EQ(cudaSuccess, cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
  }
  void TearDown() override {
    cudaEventDestroy(event_);
    cudaStreamDestroy(other_);
    SimTest::TearDown();
  }
  void set(cudaStream_t stream, float* to, float value) {
    ASSERT_EQ(cudaSuccess, launch_kernel(store, dim3(1), dim3(1), 0, stream, to, value));
  }
  void put(cudaStream_t stream, float value) {
    ASSERT_EQ(cudaSuccess,
              launch_kernel(append, dim3(1), dim3(1), 0, stream, list_, count_, value));
  }
  void new_list() {
    list_ = device(std::vector<float>(16));
    count_ = device({0});
    cudaStreamSynchronize(stream_);
  }
  cudaGraphExec_t end_capture() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &graph));
    EXPECT_EQ(cudaSuccess, cudaGraphInstantiate(&exec, graph, 0));
    EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
    return exec;
  }

  cudaStream_t other_ = nullptr;
  cudaEvent_t event_ = nullptr;
  float *list_ = nullptr, *count_ = nullptr;
};

TEST_F(Streams, WithoutAWaitTheOtherStreamIsTooLate) {
  float* memory = device({1});
  cudaStreamSynchronize(stream_);
  set(other_, memory, 2);
  EXPECT_EQ(host(memory, 1), std::vector<float>{1});
  cudaStreamSynchronize(other_);
  EXPECT_EQ(host(memory, 1), std::vector<float>{2});
}

TEST_F(Streams, AWaitPutsThemInOrder) {
  float* memory = device({1});
  cudaStreamSynchronize(stream_);
  set(other_, memory, 2);
  ASSERT_EQ(cudaSuccess, cudaEventRecord(event_, other_));
  set(other_, memory, 3);  // behind the event: not waited for
  ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(stream_, event_, 0));
  EXPECT_EQ(host(memory, 1), std::vector<float>{2});
}

TEST_F(Streams, AnEventThatWasNotRecordedHoldsNobody) {
  EXPECT_EQ(cudaSuccess, cudaStreamWaitEvent(stream_, event_, 0));
  EXPECT_EQ(cudaSuccess, cudaEventSynchronize(event_));
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
}

TEST_F(Streams, DiceChangeTheOrderAndTheSeedDecidesIt) {
  std::set<std::vector<float>> orders;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    std::vector<float> seen[2];
    for (auto& order : seen) {
      set_seed(0);
      new_list();
      set_seed(seed);
      for (int i = 0; i < 5; ++i) {
        put(stream_, static_cast<float>(i));
        put(other_, static_cast<float>(10 + i));
      }
      cudaStreamSynchronize(stream_);
      cudaStreamSynchronize(other_);
      order = host(list_, 10);
    }
    EXPECT_EQ(seen[0], seen[1]) << "seed " << seed;
    orders.insert(seen[0]);
  }
  EXPECT_GT(orders.size(), 2u);
}

TEST_F(Streams, TheDefaultStreamWaitsForBlockingStreams) {
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaSuccess, cudaStreamCreate(&blocking));
  float* memory = device({1});
  cudaStreamSynchronize(stream_);
  set(blocking, memory, 2);
  float value = 0;
  EXPECT_EQ(cudaSuccess, cudaMemcpy(&value, memory, 4, cudaMemcpyDeviceToHost));
  EXPECT_EQ(value, 2);
  cudaStreamDestroy(blocking);
}

TEST_F(Streams, ElapsedTimeNeedsTimedAndFinishedEvents) {
  float milliseconds = -1;
  cudaEvent_t begin = nullptr, end = nullptr;
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&begin));
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&end));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, begin, end));
  cudaEventRecord(begin, stream_);
  cudaEventRecord(end, stream_);
  EXPECT_EQ(cudaErrorNotReady, cudaEventElapsedTime(&milliseconds, begin, end));
  EXPECT_EQ(cudaSuccess, cudaEventSynchronize(end));
  EXPECT_EQ(cudaSuccess, cudaEventElapsedTime(&milliseconds, begin, end));
  EXPECT_GE(milliseconds, 0);
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, begin, event_));
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
}

TEST_F(Streams, DestroyedHandlesAreRefused) {
  cudaStream_t gone = nullptr;
  cudaEvent_t event = nullptr;
  cudaStreamCreateWithFlags(&gone, cudaStreamNonBlocking);
  cudaStreamDestroy(gone);
  cudaEventCreateWithFlags(&event, 0);
  cudaEventDestroy(event);
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(gone));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventRecord(event, stream_));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaStreamWaitEvent(stream_, event, 0));
  EXPECT_EQ(cudaErrorInvalidResourceHandle,
            launch_kernel(store, dim3(1), dim3(1), 0, gone, device({0}), 1.0f));
}

TEST_F(Streams, AGraphPlaysWhatWasCapturedAgain) {
  new_list();
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  put(stream_, 7);
  put(stream_, 8);
  cudaStreamCaptureStatus status{};
  EXPECT_EQ(cudaSuccess, cudaStreamIsCapturing(stream_, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  cudaGraphExec_t exec = end_capture();
  EXPECT_EQ(host(count_, 1), std::vector<float>{0}) << "capture runs nothing";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));  // launched ones go on
  EXPECT_EQ(host(list_, 4), (std::vector<float>{7, 8, 7, 8}));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphLaunch(exec, stream_));
}

TEST_F(Streams, BranchesOfAGraphHaveNoOrderOfTheirOwn) {
  new_list();
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  cudaEventRecord(event_, stream_);
  ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(other_, event_, 0));
  put(stream_, 1);
  put(other_, 2);
  cudaEventRecord(event_, other_);
  ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(stream_, event_, 0));
  put(stream_, 3);
  cudaGraphExec_t exec = end_capture();
  cudaGraphLaunch(exec, stream_);
  EXPECT_EQ(host(list_, 3), (std::vector<float>{2, 1, 3}));
  cudaGraphExecDestroy(exec);
}

TEST_F(Streams, CaptureRefusesWhatWaits) {
  struct Call {
    const char* name;
    std::function<cudaError_t()> call;
  };
  void* memory = nullptr;
  float value = 0;
  float* there = device({1});
  cudaStreamSynchronize(stream_);
  const std::vector<Call> calls = {
      {"cudaStreamSynchronize", [&] { return cudaStreamSynchronize(stream_); }},
      {"cudaStreamQuery", [&] { return cudaStreamQuery(stream_); }},
      {"cudaDeviceSynchronize", [&] { return cudaDeviceSynchronize(); }},
      {"cudaMalloc", [&] { return cudaMalloc(&memory, 4); }},
      {"cudaFree", [&] { return cudaFree(there); }},
      {"cudaMallocHost", [&] { return cudaMallocHost(&memory, 4); }},
      {"a copy to pageable memory",
       [&] { return cudaMemcpyAsync(&value, there, 4, cudaMemcpyDefault, stream_); }},
      {"cudaStreamDestroy", [&] { return cudaStreamDestroy(stream_); }},
  };
  for (const Call& call : calls) {
    SCOPED_TRACE(call.name);
    ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
    EXPECT_EQ(cudaErrorStreamCaptureUnsupported, call.call());
    EXPECT_EQ(cudaErrorStreamCaptureInvalidated,
              launch_kernel(store, dim3(1), dim3(1), 0, stream_, there, 1.0f));
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream_, &graph));
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  }
}

TEST_F(Streams, CaptureRefusesWrongJoins) {
  float* memory = device({0});
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaErrorIllegalState, cudaStreamEndCapture(stream_, &graph));
  EXPECT_EQ(cudaErrorStreamCaptureImplicit,
            cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
  cudaEventRecord(event_, other_);  // outside
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(cudaErrorIllegalState, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(stream_, event_, 0));
  cudaEventRecord(event_, stream_);
  EXPECT_EQ(cudaErrorCapturedEvent, cudaEventSynchronize(event_));
  EXPECT_EQ(cudaErrorCapturedEvent, cudaEventQuery(event_));
  ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(other_, event_, 0));
  set(other_, memory, 1);
  EXPECT_EQ(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(other_, &graph));
  EXPECT_EQ(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(stream_, &graph));
  EXPECT_EQ(cudaErrorCapturedEvent, cudaStreamWaitEvent(stream_, event_, 0));
}

TEST_F(Streams, AnotherThreadMustNotEndACapture) {
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t graph = nullptr;
  cudaError_t there = cudaSuccess;
  void* memory = nullptr;
  std::thread([&] {
    there = cudaStreamEndCapture(stream_, &graph);
    EXPECT_EQ(cudaSuccess, cudaMalloc(&memory, 4)) << "thread-local: other threads may";
    EXPECT_EQ(cudaSuccess, cudaFree(memory));
  }).join();
  EXPECT_EQ(cudaErrorStreamCaptureWrongThread, there);
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaMalloc(&memory, 4));
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream_, &graph));
}

}  // namespace
}  // namespace crema::cuda_sim
