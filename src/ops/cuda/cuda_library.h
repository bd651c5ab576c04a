// What libcrema_cuda.so offers to ops/make_ops.cpp, the only file that loads it. No header of a
// library is seen here.
#pragma once

#include <memory>

#include "ops/ops.h"

namespace crema {

class CudaLibrary {
 public:
  virtual ~CudaLibrary() = default;
  /// How many cards answer. Throws Error where the driver is missing or too old.
  virtual int device_count() const = 0;
  /// Throws Error when there is no such card.
  virtual std::shared_ptr<Ops> make(const Device& device) const = 0;
};

/// Name and type of the one function that the library exports.
constexpr const char* kCudaLibraryEntry = "crema_cuda_library";
using CudaLibraryEntry = const CudaLibrary* (*)();

}  // namespace crema
