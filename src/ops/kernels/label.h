// What every functor that reads labels or indices shares: a float that stands for a whole number,
// and the report of one that is out of range. Whatever stands there, no memory is touched out of
// bounds.
#pragma once

#include "ops/kernel.h"

namespace crema {
namespace CREMA_ISA {

/// What label_of makes of a float that stands for no number in reach.
constexpr int kNoLabel = -2147483647 - 1;

/// The whole number that a float stands for, truncated as Caffe does; kNoLabel for NaN and for what
/// is far out of any range.
CREMA_BOTH inline int label_of(float value) {
  return value > -1e9f && value < 1e9f ? static_cast<int>(value) : kNoLabel;
}

CREMA_BOTH inline int32_t compare_and_swap(int32_t* at, int32_t expected, int32_t desired) {
#if defined(__CUDA_ARCH__)
  return atomicCAS(at, expected, desired);
#else
  __atomic_compare_exchange_n(at, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
#endif
}

CREMA_BOTH inline void release(int32_t* at, int32_t value) {
#if defined(__CUDA_ARCH__)
  __threadfence();
  atomicExch(at, value);
#else
  __atomic_store_n(at, value, __ATOMIC_RELEASE);
#endif
}

/// Writes a fault. Of several in one layer the lowest index stays, so that the message does not
/// depend on the number of threads. While one thread writes, set is 2.
CREMA_BOTH inline void report_fault(Fault* fault, int32_t layer, int64_t index, float value) {
  for (;;) {
    const int32_t seen = compare_and_swap(&fault->set, 0, 2);
    if (seen == 2 || (seen == 1 && compare_and_swap(&fault->set, 1, 2) != 1)) continue;
    if (seen == 0 || (fault->layer == layer && fault->index > index)) {
      fault->layer = layer;
      fault->index = index;
      fault->value = value;
    }
    release(&fault->set, 1);
    return;
  }
}

/// The label in [0, classes), or -1 after a report.
CREMA_BOTH inline int checked_label(float value, int classes, Fault* fault, int32_t layer,
                                    int64_t index) {
  const int label = label_of(value);
  if (label >= 0 && label < classes) return label;
  report_fault(fault, layer, index, value);
  return -1;
}

}  // namespace CREMA_ISA
}  // namespace crema
