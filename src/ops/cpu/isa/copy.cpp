// Adding and transposing.
#include "ops/cpu/isa/loops.h"

namespace crema::CREMA_ISA {
namespace {

constexpr int64_t kTile = 8;

/// One tile of kTile x kTile through registers: the compiler turns it into shuffles.
void transpose_tile(const float* src, int64_t src_stride, float* dst, int64_t dst_stride) {
  float tile[kTile][kTile];
  for (int64_t r = 0; r < kTile; ++r) {
    for (int64_t c = 0; c < kTile; ++c) tile[c][r] = src[r * src_stride + c];
  }
  for (int64_t c = 0; c < kTile; ++c) {
    for (int64_t r = 0; r < kTile; ++r) dst[c * dst_stride + r] = tile[c][r];
  }
}

/// Few rows (the planes of a picture): kRows streams woven into one.
template <int kRows>
void weave(const TransposeArgs& t) {
  for (int64_t c = t.col_begin; c < t.col_end; ++c) {
    for (int r = 0; r < kRows; ++r) t.dst[c * kRows + r] = t.src[r * t.cols + c];
  }
}

/// Few columns: the reverse of weave.
template <int kCols>
void unweave(const TransposeArgs& t) {
  for (int64_t r = t.row_begin; r < t.row_end; ++r) {
    for (int c = 0; c < kCols; ++c) t.dst[c * t.rows + r] = t.src[r * kCols + c];
  }
}

}  // namespace

void add(const float* src, float* dst, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dst[i] += src[i];
}

void column_sums(const ColumnSums& a, int64_t begin, int64_t end) {
  constexpr int64_t kBlock = 64, kRows = 256;
  for (int64_t c = begin; c < end; c += kBlock) {
    const int64_t n = end - c < kBlock ? end - c : kBlock;
    alignas(64) double total[kBlock] = {};
    for (int64_t r = 0; r < a.rows; r += kRows) {
      alignas(64) float sum[kBlock] = {};
      const int64_t last = r + kRows < a.rows ? r + kRows : a.rows;
      for (int64_t row = r; row < last; ++row) {
        const float* x = a.x + row * a.cols + c;
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) sum[i] += x[i];
      }
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) total[i] += static_cast<double>(sum[i]);
    }
    for (int64_t i = 0; i < n; ++i) {
      a.y[c + i] = static_cast<float>(total[i]) + (a.accumulate ? a.y[c + i] : 0.0f);
    }
  }
}

void transpose(const TransposeArgs& t) {
  if (t.rows == 3 && t.row_begin == 0 && t.row_end == 3) return weave<3>(t);
  if (t.cols == 3 && t.col_begin == 0 && t.col_end == 3) return unweave<3>(t);
  for (int64_t r = t.row_begin; r < t.row_end; r += kTile) {
    for (int64_t c = t.col_begin; c < t.col_end; c += kTile) {
      if (r + kTile <= t.row_end && c + kTile <= t.col_end) {
        transpose_tile(t.src + r * t.cols + c, t.cols, t.dst + c * t.rows + r, t.rows);
        continue;
      }
      const int64_t r_end = r + kTile < t.row_end ? r + kTile : t.row_end;
      const int64_t c_end = c + kTile < t.col_end ? c + kTile : t.col_end;
      for (int64_t cc = c; cc < c_end; ++cc) {
        for (int64_t rr = r; rr < r_end; ++rr) t.dst[cc * t.rows + rr] = t.src[rr * t.cols + cc];
      }
    }
  }
}

}  // namespace crema::CREMA_ISA
