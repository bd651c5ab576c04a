// Adding, transposing and rounding to bf16.
#include "ops/cpu/isa/loops.h"
#include "ops/small_floats.h"

namespace crema::CREMA_ISA {
namespace {

constexpr int64_t kTile = 8;

// Elements as they are moved: bits where the type stays, by way of f32 where it changes.
template <class T>
T moved(T x, T*) {
  return x;
}
Bf16 moved(float x, Bf16*) { return narrow_bf16(x); }
float moved(Bf16 x, float*) { return crema::CREMA_ISA::widen(x); }

/// A TransposeArgs whose types are known.
template <class From, class To>
struct Typed {
  explicit Typed(const TransposeArgs& t)
      : src(static_cast<const From*>(t.src)), dst(static_cast<To*>(t.dst)), t(t) {}
  const From* src;
  To* dst;
  const TransposeArgs& t;
  void move(int64_t r, int64_t c) const {
    dst[c * t.rows + r] = moved(src[r * t.cols + c], static_cast<To*>(nullptr));
  }
};

/// One tile of kTile x kTile through registers: the compiler turns it into shuffles.
template <class From, class To>
void transpose_tile(const From* src, int64_t src_stride, To* dst, int64_t dst_stride) {
  To tile[kTile][kTile];
  for (int64_t r = 0; r < kTile; ++r) {
    for (int64_t c = 0; c < kTile; ++c) {
      tile[c][r] = moved(src[r * src_stride + c], static_cast<To*>(nullptr));
    }
  }
  for (int64_t c = 0; c < kTile; ++c) {
    for (int64_t r = 0; r < kTile; ++r) dst[c * dst_stride + r] = tile[c][r];
  }
}

/// Few rows (the planes of a picture): kRows streams woven into one.
template <int kRows, class From, class To>
void weave(const Typed<From, To>& a) {
  for (int64_t c = a.t.col_begin; c < a.t.col_end; ++c) {
    for (int r = 0; r < kRows; ++r) {
      a.dst[c * kRows + r] = moved(a.src[r * a.t.cols + c], static_cast<To*>(nullptr));
    }
  }
}

/// Few columns: the reverse of weave.
template <int kCols, class From, class To>
void unweave(const Typed<From, To>& a) {
  for (int64_t r = a.t.row_begin; r < a.t.row_end; ++r) {
    for (int c = 0; c < kCols; ++c) {
      a.dst[c * a.t.rows + r] = moved(a.src[r * kCols + c], static_cast<To*>(nullptr));
    }
  }
}

template <class From, class To>
void transpose_as(const TransposeArgs& t) {
  const Typed<From, To> a(t);
  if (t.rows == 3 && t.row_begin == 0 && t.row_end == 3) return weave<3>(a);
  if (t.cols == 3 && t.col_begin == 0 && t.col_end == 3) return unweave<3>(a);
  for (int64_t r = t.row_begin; r < t.row_end; r += kTile) {
    for (int64_t c = t.col_begin; c < t.col_end; c += kTile) {
      if (r + kTile <= t.row_end && c + kTile <= t.col_end) {
        transpose_tile(a.src + r * t.cols + c, t.cols, a.dst + c * t.rows + r, t.rows);
        continue;
      }
      const int64_t r_end = r + kTile < t.row_end ? r + kTile : t.row_end;
      const int64_t c_end = c + kTile < t.col_end ? c + kTile : t.col_end;
      for (int64_t cc = c; cc < c_end; ++cc) {
        for (int64_t rr = r; rr < r_end; ++rr) a.move(rr, cc);
      }
    }
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

void narrow(const float* x, uint16_t* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = narrow_bf16(x[i]).bits;
}

void widen(const uint16_t* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = widen(Bf16{x[i]});
}

void transpose(const TransposeArgs& t) {
  if (t.src_is_low) {
    return t.dst_is_low ? transpose_as<Bf16, Bf16>(t) : transpose_as<Bf16, float>(t);
  }
  t.dst_is_low ? transpose_as<float, Bf16>(t) : transpose_as<float, float>(t);
}

}  // namespace crema::CREMA_ISA
