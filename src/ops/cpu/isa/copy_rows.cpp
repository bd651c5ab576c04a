// Copying between rows of different lengths: whole rows, each piece of memory in one go.
#include "ops/cpu/isa/ranges.h"

namespace crema::CREMA_ISA {
namespace {

constexpr int64_t kLine = 16;       // floats of a cache line
constexpr int64_t kRowsAhead = 16;  // the processor does not foresee rows with gaps

void copy_run(const CopyRowsOf<float>& f, int64_t row, int64_t column, int64_t n) {
  const float* from = f.src + row * f.src_stride + column;
  float* to = f.dst + row * f.dst_stride + column;
  for (int64_t i = 0; i < n; i += kLine) {
    __builtin_prefetch(to + kRowsAhead * f.dst_stride + i, 1);
    __builtin_prefetch(from + kRowsAhead * f.src_stride + i);
  }
  if (f.accumulate) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] += from[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  }
}

}  // namespace

void run_range(const CopyRows& copy, int64_t begin, int64_t end) {
  const CopyRowsOf<float>& f = copy.of;
  const int64_t pieces = f.pieces_per_row.divisor();
  while (begin < end) {
    const int64_t row = begin / pieces, piece = begin % pieces;
    const int64_t left = pieces - piece, count = left < end - begin ? left : end - begin;
    copy_run(f, row, piece * f.piece, count * f.piece);
    begin += count;
  }
}

}  // namespace crema::CREMA_ISA
