// Functors by name: one index at a time, or summed over rows in an order that depends on the length
// of the row alone.
#include <cassert>

#include "base/error.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/parallel.h"

namespace crema {

const KernelEntry& CpuOps::kernel(std::string_view name) {
  const auto place = reinterpret_cast<uintptr_t>(name.data());
  CachedKernel& cached = recent_kernels_[(place >> 3 ^ place >> 11) % recent_kernels_.size()];
  if (cached.text == name.data() && name == cached.entry->name) return *cached.entry;
  const auto found = kernels_.find(name);
  require(found != kernels_.end(), "no kernel is called ", name,
          ": its struct must stand at the start of a line in ops/kernels/*.h");
  cached = {name.data(), found->second};
  return *found->second;
}

void CpuOps::launch(std::string_view name, const void* functor, int64_t n) {
  const KernelEntry& entry = kernel(name);
  assert(entry.launch);
  parallel_elements(n, entry.cost,
                    [&](int64_t begin, int64_t end) { entry.launch(functor, begin, end); });
}

void CpuOps::reduce(std::string_view name, const void* functor, int64_t rows, int64_t cols) {
  const KernelEntry& entry = kernel(name);
  assert(entry.sum);
  const auto most = static_cast<int64_t>(block_sums_.size());
  const int64_t blocks = (cols + kSumBlock - 1) / kSumBlock;
  const int64_t segment = (blocks + most - 1) / most * kSumBlock;
  const int64_t segments = segment == 0 ? 0 : (cols + segment - 1) / segment;
  const int64_t work = rows * cols * entry.cost;
  if (rows >= 4 * omp_get_max_threads() || segments <= 1) {
    parallel_ranges(rows, work, 1, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
        double sum = 0;
        for (int64_t begin = 0; begin < cols; begin += segment) {
          sum += entry.sum(functor, row, begin, std::min(begin + segment, cols));
        }
        entry.done(functor, row, static_cast<float>(sum));
      }
    });
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    parallel_ranges(segments, work / rows, 1, [&](int64_t first, int64_t last) {
      for (int64_t s = first; s < last; ++s) {
        block_sums_[static_cast<size_t>(s)] =
            entry.sum(functor, row, s * segment, std::min((s + 1) * segment, cols));
      }
    });
    double sum = 0;
    for (int64_t s = 0; s < segments; ++s) sum += block_sums_[static_cast<size_t>(s)];
    entry.done(functor, row, static_cast<float>(sum));
  }
}

}  // namespace crema
