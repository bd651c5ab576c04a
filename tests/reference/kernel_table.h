// The functors of src/ops/kernels by name, run one index after another.
#pragma once

#include <cstdint>
#include <string_view>

namespace crema::reference {

/// Throws Error when there is no such functor of that kind.
void launch_kernel(std::string_view name, const void* functor, int64_t n);
/// The sum of each row is taken in float64.
void reduce_kernel(std::string_view name, const void* functor, int64_t rows, int64_t cols);

}  // namespace crema::reference
