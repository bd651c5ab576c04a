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

/// Whether strips of a are packed too: a is read once more, then in a better order for each column
/// tile.
bool packs_a(const GemmArgs& g, int64_t tile_cols) { return g.n >= 8 * tile_cols; }

/// What packing the second operand, reading the first one across its rows and writing c cost, in
/// steps of a copy.
int64_t packing_cost(const GemmArgs& g, int64_t tile_cols) {
  const int64_t pack = g.k * g.n * (g.b.col_stride == 1 ? 1 : 3);
  const int64_t read = g.a.col_stride == 1 || packs_a(g, tile_cols) ? 0 : 3 * g.m * g.k;
  const int64_t store = g.c_col_stride == 1 ? 0 : 2 * g.m * g.n * ((g.k + 255) / 256);
  return pack + read + store;
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
  if (packing_cost(other, isa_.gemm_cols) < packing_cost(g, isa_.gemm_cols)) g = other;
  g.packs_a = packs_a(g, isa_.gemm_cols);
  split(g.m, g.n, work, [&](int, const GemmPart& part) { isa_.gemm(g, part); });
}

Grid Gemm::grid_for(int64_t m, int64_t n, int64_t work) const {
  const int64_t row_tiles = (m + isa_.gemm_rows - 1) / isa_.gemm_rows;
  const int64_t col_tiles = (n + isa_.gemm_cols - 1) / isa_.gemm_cols;
  const int threads = std::min(threads_for(row_tiles * col_tiles, work), most_threads());
  Grid best;
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

GemmPart Gemm::part_of(const Grid& grid, int rank, int64_t m, int64_t n) const {
  const int64_t row_tiles = (m + isa_.gemm_rows - 1) / isa_.gemm_rows;
  const int64_t col_tiles = (n + isa_.gemm_cols - 1) / isa_.gemm_cols;
  const int64_t row = rank / grid.cols, col = rank % grid.cols;
  return {row_tiles * row / grid.rows * isa_.gemm_rows,
          std::min(row_tiles * (row + 1) / grid.rows * isa_.gemm_rows, m),
          col_tiles * col / grid.cols * isa_.gemm_cols,
          std::min(col_tiles * (col + 1) / grid.cols * isa_.gemm_cols, n),
          buffers_[static_cast<size_t>(rank)].get()};
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
