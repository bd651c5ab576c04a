// cuDNN's backend descriptors, thinly: every status is checked and becomes an Error, every
// descriptor has an owner.
#pragma once

#include <cudnn.h>
#include <cudnn_backend.h>

#include <string>
#include <vector>

namespace crema::cuda {

/// Throws Error with what was tried, the status and the library's last message.
void check(cudnnStatus_t status, const char* what);

/// One backend descriptor.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  Descriptor(Descriptor&& other) noexcept : descriptor_(other.descriptor_) {
    other.descriptor_ = nullptr;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, int64_t value) {
    set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other.descriptor_);
  }
  template <class T>
  void set_one(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
    set(name, type, 1, &value);
  }
  /// Throws Error with the library's reason.
  void finalize(const char* what);
  /// False where the library refuses.
  bool try_finalize();

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace crema::cuda
