// The heart of every matrix product: a micro-tile of the result lives in registers over a block of
// k. Included by the loops that bring their operands into strips.
#pragma once

#include <utility>

#include "ops/cpu/isa/isa.h"
#include "ops/cpu/isa/vector.h"
#include "ops/functors.h"

namespace crema::CREMA_ISA {

#if defined(__AVX512F__)
constexpr int kRows = 14;
#else
constexpr int kRows = 6;
#endif
constexpr int kCols = 2 * kWidth;
constexpr int64_t kShallow = 64;
constexpr int64_t kLine = 16;  // floats of a cache line
// A strip of b (kDepth x kCols) and a strip of a stay in the first cache, a block of b and one of a
// in the second. kLongDepth is for few columns, where a is read but once: long stretches of it.
constexpr int64_t kDepth = 256, kLongDepth = 1024,
                  kBlockCols = kGemmPackedB / kDepth / kCols * kCols;
constexpr int64_t kBlockRows = kGemmPackedA / kDepth / kRows * kRows;

/// tile [kRowCount, kCols] = a [kRowCount, depth] * strip [depth, kCols].
template <int kRowCount, bool kIsPacked>
__attribute__((always_inline)) inline void micro_tile(int64_t depth, const float* a,
                                                      int64_t row_stride, int64_t col_stride,
                                                      const float* strip, Vector (&sum)[kRows][2]) {
#pragma GCC unroll 16
  for (int i = 0; i < kRowCount; ++i) sum[i][0] = sum[i][1] = Vector{};
  // Of rows in place a line at a time is fetched early: of the strip below, which is next, or where
  // rows are long of what follows.
  const int64_t ahead = depth > kDepth ? 8 * kLine : kRows * row_stride;
  for (int64_t done = 0; done < depth; done += kLine) {
    if constexpr (!kIsPacked) {
      for (int i = 0; i < kRowCount; ++i) __builtin_prefetch(a + i * row_stride + ahead);
    }
    for (int64_t k = lesser(kLine, depth - done); k > 0; --k) {
      const Vector b0 = load(strip), b1 = load(strip + kWidth);
#pragma GCC unroll 16
      for (int i = 0; i < kRowCount; ++i) {
        const float v = kIsPacked ? a[i] : a[i * row_stride];
        sum[i][0] += v * b0;
        sum[i][1] += v * b1;
      }
      strip += kCols;
      a += kIsPacked ? kRows : col_stride;
    }
  }
}

/// Where a tile goes and what happens to it on the way.
struct Target {
  float* c;
  int64_t row_stride, col_stride, cols;
  bool adds;              // to what c holds
  const float* row_bias;  // of this tile; null until the last block of k
  const float* col_bias;
  ActKind act;
  float slope;
};

inline float activated(float v, ActKind act, float slope) {
  switch (act) {
    case ActKind::none:
      return v;
    case ActKind::relu:
      return v < 0 ? (slope == 0 ? 0.0f : slope * v) : v;
    case ActKind::relu6:
      return Relu6Of{}(v);
    case ActKind::elu:
      return EluOf{slope}(v);
  }
  return v;
}

template <int kRowCount, bool kAdds>
__attribute__((always_inline)) inline void store_tile(Vector (&sum)[kRows][2], float* c,
                                                      int64_t row_stride) {
#pragma GCC unroll 16
  for (int i = 0; i < kRowCount; ++i, c += row_stride) {
    store(c, kAdds ? load(c) + sum[i][0] : sum[i][0]);
    store(c + kWidth, kAdds ? load(c + kWidth) + sum[i][1] : sum[i][1]);
  }
}

template <int kRowCount, bool kIsPacked>
void tile(int64_t depth, const float* a, int64_t row_stride, int64_t col_stride, const float* strip,
          const Target& t) {
  Vector sum[kRows][2];  // every loop over it is unrolled, so that it stays in registers
  // c is needed only after the loop: fetched meanwhile, and further ahead where that is short.
  for (int i = 0; i < kRowCount; ++i) {
    __builtin_prefetch(t.c + i * t.row_stride, 1);
    if (depth < kShallow) __builtin_prefetch(t.c + i * t.row_stride + 4 * kCols, 1);
  }
  micro_tile<kRowCount, kIsPacked>(depth, a, row_stride, col_stride, strip, sum);
  const bool is_plain = !t.row_bias && !t.col_bias && t.act == ActKind::none;
  if (is_plain && t.col_stride == 1 && t.cols == kCols) {
    return t.adds ? store_tile<kRowCount, true>(sum, t.c, t.row_stride)
                  : store_tile<kRowCount, false>(sum, t.c, t.row_stride);
  }
  alignas(64) float values[kRows][kCols];
#pragma GCC unroll 16
  for (int i = 0; i < kRowCount; ++i) {
    store(values[i], sum[i][0]);
    store(values[i] + kWidth, sum[i][1]);
  }
  for (int i = 0; i < kRowCount; ++i) {
    float* c = t.c + i * t.row_stride;
    const float bias = t.row_bias ? t.row_bias[i] : 0.0f;
    if (t.adds) {
      for (int64_t j = 0; j < t.cols; ++j) values[i][j] += c[j * t.col_stride];
    }
    for (int64_t j = 0; t.col_bias && j < t.cols; ++j) values[i][j] += t.col_bias[j];
    for (int64_t j = 0; j < t.cols; ++j) {
      c[j * t.col_stride] = activated(values[i][j] + bias, t.act, t.slope);
    }
  }
}

using Tile = void (*)(int64_t, const float*, int64_t, int64_t, const float*, const Target&);

template <bool kIsPacked, int... kCounts>
Tile tile_of(int64_t rows, std::integer_sequence<int, kCounts...>) {
  static constexpr Tile kTiles[] = {tile<kCounts + 1, kIsPacked>...};
  return kTiles[rows - 1];
}

template <bool kIsPacked>
Tile tile_of(int64_t rows) {
  return tile_of<kIsPacked>(rows, std::make_integer_sequence<int, kRows>());
}

/// Packs a [rows, depth] into strips of kRows.
inline void pack_rows(const MatrixView& a, int64_t rows, int64_t depth, float* to) {
  for (int64_t r = 0; r < rows; r += kRows, to += kRows * depth) {
    const int64_t n = lesser(kRows, rows - r);
    const float* strip = a.data + r * a.row_stride;
    if (a.row_stride == 1 && n == kRows) {
      for (int64_t k = 0; k < depth; ++k) {
        __builtin_memcpy(to + k * kRows, strip + k * a.col_stride, kRows * sizeof(float));
      }
      continue;
    }
    for (int64_t i = 0; i < n; ++i) {
      const float* from = strip + i * a.row_stride;
      for (int64_t k = 0; k < depth; ++k) to[k * kRows + i] = from[k * a.col_stride];
    }
  }
}

}  // namespace crema::CREMA_ISA
