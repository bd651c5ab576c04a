// The oracle: an Ops whose every operation is a plain loop in float64 over f32 storage, rounded
// once at the end. Tests only; slow and obviously right is its rule.
#pragma once

#include <memory>

#include "ops/ops.h"

namespace crema {

/// Works on host memory, in the calling thread. Takes every problem of ops.h in both layouts, f32
/// storage only (the low-precision copy of update() and convert() take every dtype).
std::shared_ptr<Ops> make_reference_ops();

}  // namespace crema
