// Threads: ranges of an index are split evenly and only where the work outweighs a fork and join
// (about 5 to 10 microseconds). The split depends on the number of threads alone.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace crema {

/// Elements of a plain copy that are worth one more thread. Tests of threads lower it.
inline int64_t work_per_thread = 8192;

inline int threads_for(int64_t items, int64_t work) {
  if (omp_in_parallel()) return 1;
  const int64_t wanted = std::min(items, work / work_per_thread);
  return static_cast<int>(std::clamp<int64_t>(wanted, 1, omp_get_max_threads()));
}

/// Calls f(begin, end) on disjoint ranges that cover [0, n), their borders multiples of grain. work
/// is the whole job's, in elements of a plain copy.
template <class F>
void parallel_ranges(int64_t n, int64_t work, int64_t grain, const F& f) {
  const int64_t grains = (n + grain - 1) / grain;
  const int threads = threads_for(grains, work);
  if (threads == 1) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const int64_t rank = omp_get_thread_num(), ranks = omp_get_num_threads();
    const int64_t begin = grains * rank / ranks * grain;
    const int64_t end = std::min(grains * (rank + 1) / ranks * grain, n);
    if (begin < end) f(begin, end);
  }
}

/// parallel_ranges over n elements that cost as much as a plain copy times cost.
template <class F>
void parallel_elements(int64_t n, int64_t cost, const F& f) {
  parallel_ranges(n, n * cost, 16, f);
}

}  // namespace crema
