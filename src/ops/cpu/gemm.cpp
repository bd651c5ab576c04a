// Matrix products: which operand is packed, and who computes which part of c.
#include "ops/cpu/gemm.h"

#include <cassert>
#include <cstdlib>
#include <utility>

#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/parallel.h"

namespace crema {
namespace {

/// Up to as many columns products of rows are faster than tiles.
constexpr int64_t kFewColumns = 4;

/// What packing the second operand and writing c cost, in steps of a copy.
int64_t packing_cost(const GemmArgs& g) {
  const int64_t pack = g.k * g.n * (g.b.col_stride == 1 ? 1 : 3);
  const int64_t store = g.c_col_stride == 1 ? 0 : 2 * g.m * g.n * ((g.k + 255) / 256);
  return pack + store;
}

/// The same product as c^T = b^T a^T.
GemmArgs transposed(const GemmArgs& g) {
  GemmArgs t = g;
  t.a = {g.b.data, g.b.col_stride, g.b.row_stride};
  t.b = {g.a.data, g.a.col_stride, g.a.row_stride};
  std::swap(t.m, t.n);
  std::swap(t.c_row_stride, t.c_col_stride);
  std::swap(t.row_bias, t.col_bias);
  return t;
}

/// How many ways rows and columns are split.
struct Grid {
  int rows, cols;
};

Grid grid_for(int threads, int64_t row_tiles, int64_t col_tiles) {
  Grid best{1, 1};
  int64_t least = row_tiles * col_tiles;
  for (int rows = 1; rows <= threads; ++rows) {
    const int cols = threads / rows;
    const int64_t load = ((row_tiles + rows - 1) / rows) * ((col_tiles + cols - 1) / cols);
    if (load < least) {
      least = load;
      best = {rows, cols};
    }
  }
  return best;
}

}  // namespace

Gemm::Gemm(const Isa& isa) : isa_(isa) {
  const size_t bytes = sizeof(float) * (kGemmPackedA + kGemmPackedB);
  for (int i = 0; i < std::max(omp_get_max_threads(), omp_get_num_procs()); ++i) {
    buffers_.emplace_back(static_cast<float*>(std::aligned_alloc(4096, bytes)), std::free);
  }
}

void Gemm::run(GemmArgs g) const {
  if (g.m == 0 || g.n == 0) return;
  const GemmArgs other = transposed(g);
  const int64_t work = g.m * g.n * g.k / 16 + g.m * g.n + g.k * std::max(g.m, g.n);
  if (g.a.col_stride == 1 && g.b.row_stride == 1 && std::min(g.m, g.n) <= kFewColumns) {
    const GemmArgs& few = g.n <= g.m ? g : other;
    return parallel_ranges(few.m, work, 4,
                           [&](int64_t begin, int64_t end) { isa_.gemm_dots(few, begin, end); });
  }
  if (packing_cost(other) < packing_cost(g)) g = other;
  const int64_t row_tiles = (g.m + isa_.gemm_rows - 1) / isa_.gemm_rows;
  const int64_t col_tiles = (g.n + isa_.gemm_cols - 1) / isa_.gemm_cols;
  // Packing reads a once more; strips of a are then read col_tiles times in a better order.
  g.packs_a = col_tiles >= 8;
  const int threads =
      std::min<int>(threads_for(row_tiles * col_tiles, work), static_cast<int>(buffers_.size()));
  const Grid grid = grid_for(threads, row_tiles, col_tiles);
  const auto part = [&](int64_t rank) {
    const int64_t row = rank / grid.cols, col = rank % grid.cols;
    isa_.gemm(g, {row_tiles * row / grid.rows * isa_.gemm_rows,
                  std::min(row_tiles * (row + 1) / grid.rows * isa_.gemm_rows, g.m),
                  col_tiles * col / grid.cols * isa_.gemm_cols,
                  std::min(col_tiles * (col + 1) / grid.cols * isa_.gemm_cols, g.n),
                  buffers_[static_cast<size_t>(rank)].get()});
  };
  const int parts = grid.rows * grid.cols;
  if (parts == 1) return part(0);
#pragma omp parallel num_threads(parts)
  part(omp_get_thread_num());
}

void CpuOps::gemm(bool ta, bool tb, float alpha, CTensor a, CTensor b, Tensor c, Write how) {
  const int64_t m = c.shape()[0], n = c.shape()[1], k = ta ? a.shape()[0] : a.shape()[1];
  assert(m == (ta ? a.shape()[1] : a.shape()[0]) && n == (tb ? b.shape()[0] : b.shape()[1]));
  const int64_t a_width = a.shape()[1], b_width = b.shape()[1];
  GemmArgs args{};
  args.a = {a.f32(), ta ? 1 : a_width, ta ? a_width : 1};
  args.b = {b.f32(), tb ? 1 : b_width, tb ? b_width : 1};
  args.c = c.f32();
  args.c_row_stride = n;
  args.c_col_stride = 1;
  args.m = m;
  args.n = n;
  args.k = k;
  args.alpha = alpha;
  args.accumulate = how == Write::accumulate;
  gemm_.run(args);
}

}  // namespace crema
