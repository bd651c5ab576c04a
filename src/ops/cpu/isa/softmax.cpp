// Softmax over the middle of [outer, n, inner]: along contiguous rows, or for 64 inner positions at
// a time.
#include "ops/cpu/isa/loops.h"
#include "ops/functors.h"

namespace crema::CREMA_ISA {
namespace {

constexpr int64_t kLanes = 16, kBlock = 64;

/// Sum of f(i) over n elements in 16 lanes.
template <class F>
__attribute__((always_inline)) inline float lane_sum(int64_t n, const F& f) {
  alignas(64) float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += f(i + lane);
  }
  for (; i < n; ++i) lanes[i % kLanes] += f(i);
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  return sum;
}

void forward_row(const float* x, float* y, int64_t n) {
  float highest = x[0];
#pragma omp simd reduction(max : highest)
  for (int64_t i = 0; i < n; ++i) highest = x[i] > highest ? x[i] : highest;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = exp_of(x[i] - highest);
  const float scale = 1.0f / lane_sum(n, [=](int64_t i) { return y[i]; });
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] *= scale;
}

void forward_block(const SoftmaxArgs& a, int64_t at, int64_t count) {
  const float* x = a.x + at;
  float* y = a.y + at;
  alignas(64) float highest[kBlock], sum[kBlock];
  for (int64_t j = 0; j < count; ++j) highest[j] = x[j];
  for (int64_t i = 1; i < a.n; ++i) {
    const float* row = x + i * a.inner;
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) highest[j] = row[j] > highest[j] ? row[j] : highest[j];
  }
  for (int64_t j = 0; j < count; ++j) sum[j] = 0;
  for (int64_t i = 0; i < a.n; ++i) {
    const float* row = x + i * a.inner;
    float* to = y + i * a.inner;
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) {
      to[j] = exp_of(row[j] - highest[j]);
      sum[j] += to[j];
    }
  }
  for (int64_t j = 0; j < count; ++j) sum[j] = 1.0f / sum[j];
  for (int64_t i = 0; i < a.n; ++i) {
    float* to = y + i * a.inner;
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) to[j] *= sum[j];
  }
}

void backward_block(const SoftmaxArgs& a, int64_t at, int64_t count) {
  alignas(64) float dot[kBlock] = {};
  for (int64_t i = 0; i < a.n; ++i) {
    const float *y = a.y + at + i * a.inner, *dy = a.dy + at + i * a.inner;
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) dot[j] += y[j] * dy[j];
  }
  for (int64_t i = 0; i < a.n; ++i) {
    const float *y = a.y + at + i * a.inner, *dy = a.dy + at + i * a.inner;
    float* dx = a.dx + at + i * a.inner;
    if (a.accumulate) {
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) dx[j] += y[j] * (dy[j] - dot[j]);
    } else {
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) dx[j] = y[j] * (dy[j] - dot[j]);
    }
  }
}

void backward_row(const SoftmaxArgs& a, int64_t at) {
  const float *y = a.y + at, *dy = a.dy + at;
  float* dx = a.dx + at;
  const float dot = lane_sum(a.n, [=](int64_t i) { return y[i] * dy[i]; });
  if (a.accumulate) {
#pragma omp simd
    for (int64_t i = 0; i < a.n; ++i) dx[i] += y[i] * (dy[i] - dot);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < a.n; ++i) dx[i] = y[i] * (dy[i] - dot);
  }
}

/// Calls visit(first element, count) for blocks of the inner positions [begin, end), which are
/// counted through outer.
template <class Visit>
__attribute__((always_inline)) inline void each_block(const SoftmaxArgs& a, int64_t begin,
                                                      int64_t end, const Visit& visit) {
  while (begin < end) {
    const int64_t outer = begin / a.inner, first = begin % a.inner;
    int64_t count = a.inner - first < end - begin ? a.inner - first : end - begin;
    count = count < kBlock ? count : kBlock;
    visit(outer * a.n * a.inner + first, count);
    begin += count;
  }
}

}  // namespace

void softmax_forward(const SoftmaxArgs& a, int64_t begin, int64_t end) {
  if (a.inner == 1) {
    for (int64_t row = begin; row < end; ++row) forward_row(a.x + row * a.n, a.y + row * a.n, a.n);
    return;
  }
  each_block(a, begin, end, [&](int64_t at, int64_t count) { forward_block(a, at, count); });
}

void softmax_backward(const SoftmaxArgs& a, int64_t begin, int64_t end) {
  if (a.inner == 1) {
    for (int64_t row = begin; row < end; ++row) backward_row(a, row * a.n);
    return;
  }
  each_block(a, begin, end, [&](int64_t at, int64_t count) { backward_block(a, at, count); });
}

}  // namespace crema::CREMA_ISA
