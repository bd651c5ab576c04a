// How a functor becomes an entry of the kernel table: concepts decide what it can do.
#pragma once

#include "ops/cpu/isa/isa.h"

namespace crema::CREMA_ISA {

template <class F>
concept ElementKernel = requires(const F& f, int64_t i) {
  f(i);
};
/// With a loop of its own (ranges.h).
template <class F>
concept RangeKernel = requires(const F& f, int64_t i) {
  run_range(f, i, i);
};
template <class F>
concept RowKernel = requires(const F& f, int64_t i, float s) {
  f(i, i);
  f.done(i, s);
};

template <class F>
constexpr int64_t cost_of() {
  if constexpr (requires { F::kCost; }) {
    return F::kCost;
  } else {
    return 1;
  }
}

template <class F>
void launch_range(const void* functor, int64_t begin, int64_t end) {
  const F f = *static_cast<const F*>(functor);
  if constexpr (RangeKernel<F>) {
    run_range(f, begin, end);
  } else {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) f(i);
  }
}

template <class F>
double sum_range(const void* functor, int64_t row, int64_t begin, int64_t end) {
  const F f = *static_cast<const F*>(functor);
  double total = 0;
  alignas(64) float values[kSumBlock];
  for (int64_t block = begin; block < end; block += kSumBlock) {
    const int64_t n = end - block < kSumBlock ? end - block : kSumBlock;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) values[i] = f(row, block + i);
    const int64_t padded = (n + 15) / 16 * 16;
    for (int64_t i = n; i < padded; ++i) values[i] = 0;
    alignas(64) float lanes[16] = {};
    for (int64_t i = 0; i < padded; i += 16) {
#pragma omp simd
      for (int lane = 0; lane < 16; ++lane) lanes[lane] += values[i + lane];
    }
    double sum = 0;
    for (const float lane : lanes) sum += static_cast<double>(lane);
    total += sum;
  }
  return total;
}

template <class F>
void row_done(const void* functor, int64_t row, float sum) {
  static_cast<const F*>(functor)->done(row, sum);
}

template <class F>
constexpr KernelEntry kernel_entry(const char* name) {
  KernelEntry entry{name, cost_of<F>(), nullptr, nullptr, nullptr};
  if constexpr (ElementKernel<F>) entry.launch = launch_range<F>;
  if constexpr (RowKernel<F>) {
    entry.sum = sum_range<F>;
    entry.done = row_done<F>;
  }
  return entry;
}

}  // namespace crema::CREMA_ISA
