// Compiled for AVX2 beside the plain build and chosen at run time. Subtract, then multiply: no
// fused operation changes a bit.
#include "feed/transform_rows.h"

#pragma GCC optimize("O3")

namespace crema {
namespace {

template <bool kMirror, bool kMeanRow, class T>
[[gnu::always_inline]] inline void one_row(const T* __restrict x, int64_t step,
                                           const float* __restrict mean_row, float mean,
                                           float scale, int width, float* __restrict out) {
  for (int i = 0; i < width; ++i) {
    const float value = static_cast<float>(x[i * step]) - (kMeanRow ? mean_row[i] : mean);
    out[kMirror ? width - 1 - i : i] = value * scale;
  }
}

template <bool kMirror, bool kMeanRow, class T>
[[gnu::always_inline]] inline void all_rows(const RowBlock& b, const T* x, float* out) {
  for (int y = 0; y < b.height; ++y) {
    const T* row = x + y * b.pitch;
    const float* mean_row = kMeanRow ? b.mean_row + y * b.mean_pitch : nullptr;
    float* to = out + int64_t{y} * b.width;
    // Known steps let the compiler use vector loads: planes, and pictures of three channels.
    if (b.step == 1) {
      one_row<kMirror, kMeanRow>(row, 1, mean_row, b.mean, b.scale, b.width, to);
    } else if (b.step == 3) {
      one_row<kMirror, kMeanRow>(row, 3, mean_row, b.mean, b.scale, b.width, to);
    } else {
      one_row<kMirror, kMeanRow>(row, b.step, mean_row, b.mean, b.scale, b.width, to);
    }
  }
}

template <class T>
[[gnu::always_inline]] inline void rows_of(const RowBlock& b, const T* x, float* out) {
  if (b.mean_row) {
    b.is_mirrored ? all_rows<true, true>(b, x, out) : all_rows<false, true>(b, x, out);
  } else {
    b.is_mirrored ? all_rows<true, false>(b, x, out) : all_rows<false, false>(b, x, out);
  }
}

[[gnu::always_inline]] inline void any_rows(const RowBlock& b, float* out) {
  b.bytes ? rows_of(b, b.bytes, out) : rows_of(b, b.floats, out);
}

void plain_rows(const RowBlock& b, float* out) { any_rows(b, out); }

#if defined(__x86_64__)
__attribute__((target("avx2"))) void avx2_rows(const RowBlock& b, float* out) { any_rows(b, out); }
#endif

}  // namespace

void transform_rows(const RowBlock& rows, float* out) {
  RowBlock block = rows;
  const bool is_gapless = block.pitch == block.width * block.step &&
                          (!block.mean_row || block.mean_pitch == block.width);
  if (is_gapless && !block.is_mirrored) {  // one long row
    block.width *= block.height;
    block.height = 1;
  }
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return avx2_rows(block, out);
#endif
  plain_rows(block, out);
}

}  // namespace crema
