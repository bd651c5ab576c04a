// The functors of ops/kernels in compiled form, found by name. The table itself is written by
// cmake/KernelTable.cmake.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "ops/kernel.h"

namespace crema::cuda {

/// Rows to be summed, and room on the device for `room` partial sums.
struct RowSums {
  int64_t rows, cols;
  double* partial;
  int64_t room;
};

/// One functor; launch or reduce is null where it has no such call.
struct KernelEntry {
  const char* name;
  void (*launch)(const void* functor, int64_t n, cudaStream_t stream);
  void (*reduce)(const void* functor, const RowSums& sums, cudaStream_t stream);
};

}  // namespace crema::cuda

namespace crema::CREMA_ISA {
using cuda::KernelEntry;
extern const KernelEntry kKernels[];
extern const int kKernelCount;
}  // namespace crema::CREMA_ISA
