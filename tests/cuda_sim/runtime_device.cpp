// The simulated cards: how many, what they are like, and the names of errors.
#include <cstring>

#include "cuda_sim/memory.h"
#include "cuda_sim/sim.h"

using namespace crema::cuda_sim;

namespace {

constexpr int kVersion = CUDART_VERSION;
// Few processors, so that loops over a grid are short of blocks.
constexpr int kProcessors = 16;

int attribute(cudaDeviceAttr name) {
  switch (name) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      return 1024;
    case cudaDevAttrMaxBlockDimZ:
      return 64;
    case cudaDevAttrMaxGridDimX:
      return 0x7fffffff;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return 48 << 10;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return 227 << 10;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return 228 << 10;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrMultiProcessorCount:
      return kProcessors;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return 2048;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return 32;
    case cudaDevAttrComputeCapabilityMajor:
      return 9;
    case cudaDevAttrComputeCapabilityMinor:
      return 0;
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
      return 1;
    case cudaDevAttrL2CacheSize:
      return 4 << 20;
    case cudaDevAttrGlobalMemoryBusWidth:
      return 6144;
    default:
      return 0;
  }
}

struct ErrorName {
  cudaError_t error;
  const char* name;
  const char* text;
};

#define CREMA_SIM_ERROR(name, text) \
  { name, #name, text }
const ErrorName kErrors[] = {
    CREMA_SIM_ERROR(cudaSuccess, "no error"),
    CREMA_SIM_ERROR(cudaErrorInvalidValue, "an argument is not allowed"),
    CREMA_SIM_ERROR(cudaErrorMemoryAllocation, "the card's memory is used up"),
    CREMA_SIM_ERROR(cudaErrorInvalidConfiguration, "no such grid or block"),
    CREMA_SIM_ERROR(cudaErrorInvalidDevice, "no such card"),
    CREMA_SIM_ERROR(cudaErrorInvalidDeviceFunction, "no such kernel"),
    CREMA_SIM_ERROR(cudaErrorInvalidResourceHandle, "no such stream or event"),
    CREMA_SIM_ERROR(cudaErrorNotReady, "not finished yet"),
    CREMA_SIM_ERROR(cudaErrorNoDevice, "no card"),
    CREMA_SIM_ERROR(cudaErrorIllegalState, "not possible in this state"),
    CREMA_SIM_ERROR(cudaErrorIllegalAddress, "a wrong address was touched"),
    CREMA_SIM_ERROR(cudaErrorLaunchFailure, "work on the card failed"),
    CREMA_SIM_ERROR(cudaErrorStreamCaptureUnsupported, "not allowed during capture"),
    CREMA_SIM_ERROR(cudaErrorStreamCaptureInvalidated, "the capture was broken before"),
    CREMA_SIM_ERROR(cudaErrorStreamCaptureMerge, "two captures would become one"),
    CREMA_SIM_ERROR(cudaErrorStreamCaptureUnmatched, "the capture began on another stream"),
    CREMA_SIM_ERROR(cudaErrorStreamCaptureUnjoined, "a stream was not joined before the end"),
    CREMA_SIM_ERROR(cudaErrorStreamCaptureIsolation, "waits for what is not in the capture"),
    CREMA_SIM_ERROR(cudaErrorStreamCaptureImplicit, "the default stream cannot be captured"),
    CREMA_SIM_ERROR(cudaErrorStreamCaptureWrongThread, "another thread began the capture"),
    CREMA_SIM_ERROR(cudaErrorCapturedEvent, "the event belongs to a capture"),
};
#undef CREMA_SIM_ERROR

const ErrorName* name_of(cudaError_t error) {
  for (const ErrorName& known : kErrors) {
    if (known.error == error) return &known;
  }
  return nullptr;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  *count = card_count();
  return card_count() == 0 ? result(cudaErrorNoDevice) : cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= card_count()) return result(cudaErrorInvalidDevice);
  current_card() = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return result(cudaErrorInvalidValue);
  *device = current_card();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr name, int device) {
  if (value == nullptr) return result(cudaErrorInvalidValue);
  if (device < 0 || device >= card_count()) return result(cudaErrorInvalidDevice);
  *value = attribute(name);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (properties == nullptr) return result(cudaErrorInvalidValue);
  if (device < 0 || device >= card_count()) return result(cudaErrorInvalidDevice);
  std::memset(properties, 0, sizeof(*properties));
  std::strncpy(properties->name, "Simulated card", sizeof(properties->name) - 1);
  properties->totalGlobalMem = card_memory();
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerBlockOptin = 227 << 10;
  properties->sharedMemPerMultiprocessor = 228 << 10;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->maxBlocksPerMultiProcessor = 32;
  for (int axis = 0; axis < 3; ++axis) {
    properties->maxThreadsDim[axis] = axis == 2 ? 64 : 1024;
    properties->maxGridSize[axis] = axis == 0 ? 0x7fffffff : 65535;
  }
  properties->major = 9;
  properties->multiProcessorCount = kProcessors;
  properties->unifiedAddressing = properties->concurrentKernels = 1;
  properties->l2CacheSize = 4 << 20;
  properties->memoryBusWidth = 6144;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return result(cudaErrorInvalidValue);
  *version = kVersion;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

const char* cudaGetErrorName(cudaError_t error) {
  const ErrorName* name = name_of(error);
  return name == nullptr ? "cudaErrorUnknown" : name->name;
}
const char* cudaGetErrorString(cudaError_t error) {
  const ErrorName* name = name_of(error);
  return name == nullptr ? "another error" : name->text;
}
