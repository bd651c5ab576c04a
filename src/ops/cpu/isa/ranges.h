// Functors of ops/kernels/*.h with a loop of their own for a range of indices, the same to the bit
// as one index after another.
#pragma once

#include "ops/kernels/copy_rows.h"
#include "ops/kernels/dropout.h"

namespace crema::CREMA_ISA {

void run_range(const CopyRows& f, int64_t begin, int64_t end);
void run_range(const DropoutMask& f, int64_t begin, int64_t end);

}  // namespace crema::CREMA_ISA
