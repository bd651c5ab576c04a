// Compiled for AVX2 beside the plain build and chosen at run time. Subtract, then multiply: no
// fused operation changes a bit.
#include "feed/transform_rows.h"

#include <algorithm>
#include <cstring>

#pragma GCC optimize("O3")

namespace crema {
namespace {

template <bool kMeanRow, class T>
[[gnu::always_inline]] inline void one_row(const T* __restrict x, int64_t step,
                                           const float* __restrict mean_row, float mean,
                                           float scale, int width, float* __restrict out) {
  for (int i = 0; i < width; ++i) {
    out[i] = (static_cast<float>(x[i * step]) - (kMeanRow ? mean_row[i] : mean)) * scale;
  }
}

template <bool kMeanRow, class T>
[[gnu::always_inline]] inline void all_rows(const RowBlock& b, const T* x, float* out) {
  for (int y = 0; y < b.height; ++y) {
    const T* row = x + y * b.pitch;
    const float* mean_row = kMeanRow ? b.mean_row + y * b.mean_pitch : nullptr;
    float* to = out + int64_t{y} * b.width;
    // Known steps let the compiler use vector loads: planes, and pictures of three channels.
    if (b.step == 1) {
      one_row<kMeanRow>(row, 1, mean_row, b.mean, b.scale, b.width, to);
    } else if (b.step == 3) {
      one_row<kMeanRow>(row, 3, mean_row, b.mean, b.scale, b.width, to);
    } else {
      one_row<kMeanRow>(row, b.step, mean_row, b.mean, b.scale, b.width, to);
    }
  }
}

/// In place, eight values from each end at a time.
[[gnu::always_inline]] inline void reverse_row(float* row, int width) {
  typedef float Eight __attribute__((vector_size(32)));
  int from = 0, to = width;
  for (; to - from >= 16; from += 8, to -= 8) {
    Eight left, right;
    std::memcpy(&left, row + from, sizeof left);
    std::memcpy(&right, row + to - 8, sizeof right);
    left = __builtin_shufflevector(left, left, 7, 6, 5, 4, 3, 2, 1, 0);
    right = __builtin_shufflevector(right, right, 7, 6, 5, 4, 3, 2, 1, 0);
    std::memcpy(row + from, &right, sizeof right);
    std::memcpy(row + to - 8, &left, sizeof left);
  }
  std::reverse(row + from, row + to);
}

template <class T>
[[gnu::always_inline]] inline void rows_of(const RowBlock& b, const T* x, float* out) {
  b.mean_row ? all_rows<true>(b, x, out) : all_rows<false>(b, x, out);
}

/// rows: as asked for; gapless: the same, perhaps as one long row.
[[gnu::always_inline]] inline void any_rows(const RowBlock& rows, const RowBlock& gapless,
                                            float* out) {
  gapless.bytes ? rows_of(gapless, gapless.bytes, out) : rows_of(gapless, gapless.floats, out);
  if (!rows.is_mirrored) return;
  for (int y = 0; y < rows.height; ++y) reverse_row(out + int64_t{y} * rows.width, rows.width);
}

void plain_rows(const RowBlock& rows, const RowBlock& gapless, float* out) {
  any_rows(rows, gapless, out);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void avx2_rows(const RowBlock& rows, const RowBlock& gapless,
                                               float* out) {
  any_rows(rows, gapless, out);
}
#endif

}  // namespace

void transform_rows(const RowBlock& rows, float* out) {
  RowBlock gapless = rows;
  if (rows.pitch == rows.width * rows.step && (!rows.mean_row || rows.mean_pitch == rows.width)) {
    gapless.width *= gapless.height;
    gapless.height = 1;
  }
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return avx2_rows(rows, gapless, out);
#endif
  plain_rows(rows, gapless, out);
}

}  // namespace crema
