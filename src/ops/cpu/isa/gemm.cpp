// Matrix product: blocks of b are packed into strips one micro-tile wide, a is read in place or
// packed where it is read often; a micro-tile of c lives in registers over a block of k (Goto and
// van de Geijn 2008, "Anatomy of high-performance matrix multiplication"). Each element is summed
// in an order that depends on the shapes alone.
#include "ops/cpu/isa/loops.h"
#include "ops/cpu/isa/micro_tile.h"

namespace crema::CREMA_ISA {
namespace {

/// Packs b [depth, cols] into strips of kCols, the last one padded with zeros.
void pack_strips(const MatrixView& b, int64_t depth, int64_t cols, float alpha, float* to) {
  constexpr int64_t kTogether = 8 * kCols, kAhead = 16;
  int64_t j = 0;
  // Rows that lie in one piece: several strips at once, so that a row is read in long stretches.
  for (; b.col_stride == 1 && j + kCols <= cols; j += kTogether) {
    const int64_t strips = lesser(kTogether, cols - j) / kCols;
    for (int64_t k = 0; k < depth; ++k) {
      const float* row = b.data + k * b.row_stride + j;
      for (int64_t s = 0; s < strips; ++s) {
        const float* from = row + s * kCols;
        float* target = to + ((j / kCols + s) * depth + k) * kCols;
        __builtin_prefetch(from + kAhead * b.row_stride);
        store(target, alpha * load(from));
        store(target + kWidth, alpha * load(from + kWidth));
      }
    }
    if (strips * kCols < kTogether) {
      j += strips * kCols;
      break;
    }
  }
  for (; j < cols; j += kCols) {
    const int64_t n = lesser(kCols, cols - j);
    for (int64_t i = 0; i < kCols; ++i) {
      float* target = to + j * depth + i;
      const float* column = b.data + (j + i) * b.col_stride;
      for (int64_t k = 0; k < depth; ++k) {
        target[k * kCols] = i < n ? alpha * column[k * b.row_stride] : 0.0f;
      }
    }
  }
}

/// One block of b.
struct Block {
  int64_t first_col, cols, first_k, depth;
  bool is_first, is_last;  // of k
};

/// Rows [row, row + count) of c by one strip of the block.
template <bool kIsPacked>
void multiply_tile(const GemmArgs& g, const Block& block, const float* a, int64_t row,
                   int64_t count, int64_t j, const float* packed_b) {
  const int64_t col = block.first_col + j;
  const Target target{g.c + row * g.c_row_stride + col * g.c_col_stride,
                      g.c_row_stride,
                      g.c_col_stride,
                      lesser(kCols, block.cols - j),
                      !block.is_first || g.accumulate,
                      block.is_last && g.row_bias ? g.row_bias + row : nullptr,
                      block.is_last && g.col_bias ? g.col_bias + col : nullptr,
                      block.is_last ? g.act : ActKind::none,
                      g.slope};
  tile_of<kIsPacked>(count)(block.depth, a, g.a.row_stride, g.a.col_stride,
                            packed_b + j * block.depth, target);
}

void multiply_block(const GemmArgs& g, const Block& block, int64_t begin, int64_t end,
                    const float* packed_b, float* packed_a) {
  // A small block of b stays near: c is then written row by row, in long stretches.
  const bool by_rows = block.depth * block.cols <= kGemmPackedA / 2 || block.depth > kDepth;
  for (int64_t i0 = begin; i0 < end; i0 += kBlockRows) {
    const int64_t rows = lesser(kBlockRows, end - i0);
    const MatrixView a{g.a.data + i0 * g.a.row_stride + block.first_k * g.a.col_stride,
                       g.a.row_stride, g.a.col_stride};
    if (g.packs_a) pack_rows(a, rows, block.depth, packed_a);
    const auto multiply = [&](int64_t i, int64_t j) {
      const int64_t count = lesser(kRows, rows - i);
      if (g.packs_a) {
        const float* strip = packed_a + i * block.depth;
        multiply_tile<true>(g, block, strip, i0 + i, count, j, packed_b);
      } else {
        const float* strip = a.data + i * a.row_stride;
        multiply_tile<false>(g, block, strip, i0 + i, count, j, packed_b);
      }
    };
    if (by_rows) {
      for (int64_t i = 0; i < rows; i += kRows) {
        for (int64_t j = 0; j < block.cols; j += kCols) multiply(i, j);
      }
    } else {
      for (int64_t j = 0; j < block.cols; j += kCols) {
        for (int64_t i = 0; i < rows; i += kRows) multiply(i, j);
      }
    }
  }
}

/// sum over k of a(i, k) * b(k, j) where both lie along k in one piece, for a few columns.
template <int kColCount>
void dot_rows(const GemmArgs& g, int64_t begin, int64_t end, int64_t col) {
  for (int64_t i = begin; i < end; ++i) {
    const float* a = g.a.data + i * g.a.row_stride;
    Vector sum[kColCount][2] = {};
    int64_t k = 0;
    for (; k + kCols <= g.k; k += kCols) {
      const Vector a0 = load(a + k), a1 = load(a + k + kWidth);
      __builtin_prefetch(a + k + 64 * kWidth);
      for (int j = 0; j < kColCount; ++j) {
        const float* b = g.b.data + (col + j) * g.b.col_stride + k;
        sum[j][0] += a0 * load(b);
        sum[j][1] += a1 * load(b + kWidth);
      }
    }
    for (int j = 0; j < kColCount; ++j) {
      const Vector both = sum[j][0] + sum[j][1];
      float v = 0;
      for (int lane = 0; lane < kWidth; ++lane) v += both[lane];
      for (int64_t rest = k; rest < g.k; ++rest) {
        v += a[rest] * g.b.data[(col + j) * g.b.col_stride + rest];
      }
      float& c = g.c[i * g.c_row_stride + (col + j) * g.c_col_stride];
      v = g.alpha * v + (g.accumulate ? c : 0.0f) + (g.row_bias ? g.row_bias[i] : 0.0f) +
          (g.col_bias ? g.col_bias[col + j] : 0.0f);
      c = activated(v, g.act, g.slope);
    }
  }
}

}  // namespace

extern const int kGemmRows = kRows;
extern const int kGemmCols = kCols;

void gemm_dots(const GemmArgs& g, int64_t begin, int64_t end) {
  for (int64_t col = 0; col < g.n; col += 4) {
    switch (g.n - col) {
      case 1:
        dot_rows<1>(g, begin, end, col);
        break;
      case 2:
        dot_rows<2>(g, begin, end, col);
        break;
      case 3:
        dot_rows<3>(g, begin, end, col);
        break;
      default:
        dot_rows<4>(g, begin, end, col);
    }
  }
}

void gemm(const GemmArgs& g, const GemmPart& part) {
  const bool is_narrow = g.n <= 2 * kCols && !g.packs_a && g.a.col_stride == 1;
  const int64_t most = is_narrow ? kLongDepth : kDepth;
  for (int64_t j = part.col_begin; j < part.col_end; j += kBlockCols) {
    const int64_t cols = lesser(kBlockCols, part.col_end - j);
    for (int64_t k = 0; k < g.k; k += most) {
      const int64_t depth = lesser(most, g.k - k);
      const MatrixView b{g.b.data + k * g.b.row_stride + j * g.b.col_stride, g.b.row_stride,
                         g.b.col_stride};
      pack_strips(b, depth, cols, g.alpha, part.buffer);
      multiply_block(g, {j, cols, k, depth, k == 0, k + depth == g.k}, part.row_begin, part.row_end,
                     part.buffer, part.buffer + kGemmPackedB);
    }
  }
}

}  // namespace crema::CREMA_ISA
