// cuDNN's backend calls, each with its status checked.
#include "ops/cuda/cudnn_api.h"

#include "base/error.h"

namespace crema::cuda {

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char message[256] = {};
  cudnnGetLastErrorString(message, sizeof message);
  std::string line(message);
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  fail("cuDNN: ", what, " failed: ", cudnnGetErrorString(status), line.empty() ? "" : ": ", line);
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  check(cudnnBackendCreateDescriptor(type, &descriptor_), "cudnnBackendCreateDescriptor");
}

Descriptor::~Descriptor() {
  if (descriptor_) cudnnBackendDestroyDescriptor(descriptor_);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     int64_t count, const void* values) {
  check(cudnnBackendSetAttribute(descriptor_, name, type, count, values),
        "cudnnBackendSetAttribute");
}

void Descriptor::finalize(const char* what) { check(cudnnBackendFinalize(descriptor_), what); }

bool Descriptor::try_finalize() {
  return cudnnBackendFinalize(descriptor_) == CUDNN_STATUS_SUCCESS;
}

}  // namespace crema::cuda
