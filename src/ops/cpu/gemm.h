// The matrix product that plans share: any orientation, with biases and an activation on the way
// out. Threads split the result; each packs in a buffer of its own.
#pragma once

#include <omp.h>

#include <memory>
#include <vector>

#include "ops/cpu/isa/isa.h"

namespace crema {

/// A result cut into rows x cols parts, one per thread.
struct Grid {
  int rows = 1, cols = 1;
};

class Gemm {
 public:
  explicit Gemm(const Isa& isa);
  /// Decides packing and orientation; args.packs_a is set here. Same bits for any number of
  /// threads.
  void run(GemmArgs args) const;

  /// Calls f(rank, part) for each part of an m x n result, on a thread of its own; rank is below
  /// most_threads(). work is the whole job's, in elements of a plain copy.
  template <class F>
  void split(int64_t m, int64_t n, int64_t work, const F& f) const {
    const Grid grid = grid_for(m, n, work);
    const int parts = grid.rows * grid.cols;
    if (parts == 1) return f(0, part_of(grid, 0, m, n));
#pragma omp parallel num_threads(parts)
    f(omp_get_thread_num(), part_of(grid, omp_get_thread_num(), m, n));
  }
  int most_threads() const { return static_cast<int>(buffers_.size()); }
  /// What GemmPart wants of memory, for the thread of that rank.
  float* buffer(int rank) const { return buffers_[static_cast<size_t>(rank)].get(); }

 private:
  Grid grid_for(int64_t m, int64_t n, int64_t work) const;
  GemmPart part_of(const Grid& grid, int rank, int64_t m, int64_t n) const;

  const Isa& isa_;
  std::vector<std::shared_ptr<float>> buffers_;  // one per thread
};

}  // namespace crema
