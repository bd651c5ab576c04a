// How a functor of ops/kernels becomes kernels: a loop that strides over the indices, and sums over
// rows in an order that depends on the row's length alone.
#pragma once

#include "ops/cuda/kernel_table.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/sums.h"

namespace crema::CREMA_ISA {

template <class F>
concept ElementKernel = requires(const F& f, int64_t i) {
  f(i);
};
template <class F>
concept RowKernel = requires(const F& f, int64_t i, float s) {
  f(i, i);
  f.done(i, s);
};

constexpr int kLoopThreads = 256;

template <class F>
__global__ void __launch_bounds__(kLoopThreads) each_index(F f, int64_t n) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) f(i);
}

/// One warp per row: rows of at most kWarpCols.
template <class F>
__global__ void __launch_bounds__(kLoopThreads) sum_short_rows(F f, int64_t rows, int64_t cols) {
  const int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x % 32);
  double sum = 0;
  if (row < rows) {
    float part = 0;
    for (int64_t col = lane; col < cols; col += 32) part += f(row, col);
    sum = part;
  }
  sum = cuda::warp_sum(sum);
  if (row < rows && lane == 0) f.done(row, static_cast<float>(sum));
}

/// One block per row and segment; the sum of a lone segment is the row's.
template <class F>
__global__ void __launch_bounds__(kLoopThreads)
    sum_segments(F f, int64_t first_row, int64_t cols, int64_t segment, int segments,
                 double* partial) {
  const int64_t row = first_row + blockIdx.x / segments;
  const int64_t begin = blockIdx.x % segments * segment;
  const int64_t end = begin + segment < cols ? begin + segment : cols;
  double sum = 0;
  float run = 0;
  int count = 0;
  for (int64_t col = begin + threadIdx.x; col < end; col += kLoopThreads) {
    run += f(row, col);
    if (++count % 64 == 0) {
      sum += run;
      run = 0;
    }
  }
  sum = cuda::block_sum<kLoopThreads>(sum + run);
  if (threadIdx.x != 0) return;
  if (segments == 1) {
    f.done(row, static_cast<float>(sum));
  } else {
    partial[blockIdx.x] = sum;
  }
}

/// One block per row, over what sum_segments left.
template <class F>
__global__ void __launch_bounds__(kLoopThreads)
    finish_rows(F f, int64_t first_row, int segments, const double* partial) {
  double sum = 0;
  for (int s = static_cast<int>(threadIdx.x); s < segments; s += kLoopThreads) {
    sum += partial[int64_t{blockIdx.x} * segments + s];
  }
  sum = cuda::block_sum<kLoopThreads>(sum);
  if (threadIdx.x == 0) f.done(first_row + blockIdx.x, static_cast<float>(sum));
}

template <class F>
void launch_each(const void* functor, int64_t n, cudaStream_t stream) {
  const F& f = *static_cast<const F*>(functor);
  cuda::launch(each_index<F>, cuda::blocks_for(n, kLoopThreads), kLoopThreads, 0, stream, f, n);
}

template <class F>
void launch_rows(const void* functor, const cuda::RowSums& sums, cudaStream_t stream) {
  constexpr int64_t kWarpCols = 512;
  const F& f = *static_cast<const F*>(functor);
  if (sums.cols <= kWarpCols) {
    constexpr int kRowsPerBlock = kLoopThreads / 32;
    const auto blocks = static_cast<unsigned>((sums.rows + kRowsPerBlock - 1) / kRowsPerBlock);
    return cuda::launch(sum_short_rows<F>, blocks, kLoopThreads, 0, stream, f, sums.rows,
                        sums.cols);
  }
  const auto [segment, segments] = cuda::split_row(sums.cols);
  const int64_t rows_at_once = segments == 1 ? cuda::kMostBlocks : sums.room / segments;
  for (int64_t first = 0; first < sums.rows; first += rows_at_once) {
    const int64_t rows = sums.rows - first < rows_at_once ? sums.rows - first : rows_at_once;
    cuda::launch(sum_segments<F>, static_cast<unsigned>(rows * segments), kLoopThreads, 0, stream,
                 f, first, sums.cols, segment, segments, sums.partial);
    if (segments == 1) continue;
    cuda::launch(finish_rows<F>, static_cast<unsigned>(rows), kLoopThreads, 0, stream, f, first,
                 segments, static_cast<const double*>(sums.partial));
  }
}

template <class F>
constexpr cuda::KernelEntry kernel_entry(const char* name) {
  cuda::KernelEntry entry{name, nullptr, nullptr};
  if constexpr (ElementKernel<F>) entry.launch = launch_each<F>;
  if constexpr (RowKernel<F>) entry.reduce = launch_rows<F>;
  return entry;
}

}  // namespace crema::CREMA_ISA
