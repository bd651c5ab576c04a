// The CUDA runtime's calls, each with its status checked.
#include "ops/cuda/cuda_api.h"

#include <glog/logging.h>

#include <cstdio>
#include <vector>

#include "base/error.h"

namespace crema::cuda {
namespace {

constexpr size_t kAlignment = 64;

/// For destructors, which must not throw: an error is logged.
void warn(cudaError_t status, const char* what) {
  // The runtime is gone at the end of a program, and with it what was to be freed.
  if (status == cudaSuccess || status == cudaErrorCudartUnloading) return;
  LOG(WARNING) << what << ": " << cudaGetErrorName(status) << ": " << cudaGetErrorString(status);
}

std::string gib(size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

void* allocate_device(size_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // it is told here, and must not be found again by the next launch
    size_t free_bytes = 0, total = 0;
    check(cudaMemGetInfo(&free_bytes, &total), "cudaMemGetInfo");
    fail("out of GPU memory: ", gib(bytes), " were wanted, ", gib(free_bytes), " of ", gib(total),
         " are free; a smaller batch_size needs less");
  }
  check(status, "cudaMalloc");
  return memory;
}

}  // namespace

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  fail("CUDA: ", what, " failed: ", cudaGetErrorName(status), ": ", cudaGetErrorString(status));
}

size_t device_bytes() {
  size_t free_bytes = 0, total = 0;
  check(cudaMemGetInfo(&free_bytes, &total), "cudaMemGetInfo");
  return total;
}

std::string version_text(int version) { return str(version / 1000, '.', version % 1000 / 10); }

int device_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorNoDevice) {
    cudaGetLastError();
    return 0;
  }
  if (status == cudaErrorInsufficientDriver) {
    cudaGetLastError();
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    fail("this build needs an NVIDIA driver for CUDA ", version_text(runtime), ", ",
         driver == 0 ? std::string("and there is no driver")
                     : "and the driver here is for CUDA " + version_text(driver),
         ": install a newer driver, or use --cpu");
  }
  check(status, "cudaGetDeviceCount");
  return count;
}

int architecture_of(int index) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  return 10 * properties.major + properties.minor;
}

std::string describe_device(int index) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  return str(properties.name, " (sm_", properties.major, properties.minor, ", ",
             gib(properties.totalGlobalMem), ", driver ", version_text(driver), ", CUDA ",
             version_text(runtime), ")");
}

Stream::Stream() {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
}

Stream::~Stream() { warn(cudaStreamDestroy(stream_), "cudaStreamDestroy"); }

void Stream::synchronize() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

Mark::Mark() {
  check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

Mark::~Mark() { warn(cudaEventDestroy(event_), "cudaEventDestroy"); }

void Mark::order(const Stream& before, const Stream& after) const {
  check(cudaEventRecord(event_, before.get()), "cudaEventRecord");
  check(cudaStreamWaitEvent(after.get(), event_, 0), "cudaStreamWaitEvent");
}

Stopwatch::Stopwatch() {
  check(cudaEventCreateWithFlags(&begin_, cudaEventDefault), "cudaEventCreateWithFlags");
  check(cudaEventCreateWithFlags(&end_, cudaEventDefault), "cudaEventCreateWithFlags");
}

Stopwatch::~Stopwatch() {
  warn(cudaEventDestroy(begin_), "cudaEventDestroy");
  warn(cudaEventDestroy(end_), "cudaEventDestroy");
}

void Stopwatch::start(const Stream& stream) const {
  check(cudaEventRecord(begin_, stream.get()), "cudaEventRecord");
}

float Stopwatch::stop(const Stream& stream) const {
  float milliseconds = 0;
  check(cudaEventRecord(end_, stream.get()), "cudaEventRecord");
  check(cudaEventSynchronize(end_), "cudaEventSynchronize");
  check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
  return milliseconds;
}

Graph::Graph(const Stream& stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
  const cudaError_t status = cudaGraphInstantiate(&exec_, graph, 0);
  warn(cudaGraphDestroy(graph), "cudaGraphDestroy");
  check(status, "cudaGraphInstantiate");
}

Graph::~Graph() { warn(cudaGraphExecDestroy(exec_), "cudaGraphExecDestroy"); }

void Graph::launch(const Stream& stream) const {
  check(cudaGraphLaunch(exec_, stream.get()), "cudaGraphLaunch");
}

void begin_recording(const Stream& stream) {
  check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
}

bool is_recording(const Stream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream.get(), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

Buffer allocate(size_t bytes, Memory kind, const Stream& stream) {
  const size_t size = (bytes + kAlignment) / kAlignment * kAlignment;
  if (kind == Memory::pinned_host) {
    void* memory = nullptr;
    check(cudaMallocHost(&memory, size), "cudaMallocHost");
    std::memset(memory, 0, size);
    return {memory, [](void* p) { warn(cudaFreeHost(p), "cudaFreeHost"); }};
  }
  const Buffer buffer{allocate_device(size), [](void* p) { warn(cudaFree(p), "cudaFree"); }};
  clear(buffer.get(), size, stream);
  return buffer;
}

void copy(const void* from, void* to, size_t bytes, const Stream& stream) {
  if (bytes == 0 || from == to) return;
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.get()), "cudaMemcpyAsync");
}

void clear(void* memory, size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  check(cudaMemsetAsync(memory, 0, bytes, stream.get()), "cudaMemsetAsync");
}

}  // namespace crema::cuda
