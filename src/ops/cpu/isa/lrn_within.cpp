// Local response normalisation within a channel: box sums over a size x size window, zero outside
// the picture. A line is a row of pixels: w values in nchw, w * c values in nhwc, where neighbours
// lie c apart.
#include "ops/cpu/isa/loops.h"
#include "ops/cpu/isa/lrn_power.h"
#include "ops/cpu/isa/vector.h"

namespace crema::CREMA_ISA {
namespace {

constexpr int64_t kBlock = 512, kColumn = 4096;

int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

/// Adds f(from[e + j * step]) to sum for |j| <= farthest, e in [first, first + n), where that lies
/// on the line.
template <class F>
__attribute__((always_inline)) inline void add_line(const float* from, int64_t line, int64_t step,
                                                    int64_t farthest, int64_t first, int64_t n,
                                                    float* sum, const F& f) {
  for (int64_t j = -farthest; j <= farthest; ++j) {
    const int64_t begin = greater(first, -j * step), end = lesser(first + n, line - j * step);
    const float* shifted = from + j * step;
#pragma omp simd
    for (int64_t e = begin; e < end; ++e) sum[e - first] += f(shifted[e]);
  }
}

/// sum[i] = box sum of f(x) at elements [first, first + n) of line h. x: the picture (nhwc) or
/// plane (nchw) that the line belongs to.
template <class F>
__attribute__((always_inline)) inline void box_sums(const LrnArgs& a, const float* x, int64_t h,
                                                    int64_t first, int64_t n, float* sum,
                                                    const F& f) {
  const int64_t reach = a.size / 2, step = a.is_nhwc ? a.channels : 1, line = a.width * step;
  const int64_t top = greater(h - reach, 0), bottom = lesser(h + reach, a.height - 1);
  const int64_t farthest = lesser(reach, a.width - 1);
  for (int64_t i = 0; i < n; ++i) sum[i] = 0;
  const int64_t left = greater(first - farthest * step, 0);
  const int64_t wide = lesser(first + n + farthest * step, line) - left;
  if (wide > kColumn) {
    for (int64_t ih = top; ih <= bottom; ++ih) {
      add_line(x + ih * line, line, step, farthest, first, n, sum, f);
    }
    return;
  }
  // Sums of columns first, then of neighbouring columns.
  alignas(64) float column[kColumn];
  for (int64_t e = 0; e < wide; ++e) column[e] = 0;
  for (int64_t ih = top; ih <= bottom; ++ih) {
    const float* from = x + ih * line + left;
#pragma omp simd
    for (int64_t e = 0; e < wide; ++e) column[e] += f(from[e]);
  }
  add_line(column - left, line, step, farthest, first, n, sum, [](float v) { return v; });
}

/// Calls visit(offset of the picture or plane, line h in it, first element, count) for all blocks
/// of the lines [begin, end).
template <class Visit>
__attribute__((always_inline)) inline void each_block(const LrnArgs& a, int64_t begin, int64_t end,
                                                      const Visit& visit) {
  const int64_t line = a.width * (a.is_nhwc ? a.channels : 1);
  for (int64_t l = begin; l < end; ++l) {
    for (int64_t e = 0; e < line; e += kBlock) {
      visit(l / a.height * a.height * line, l % a.height, e, lesser(kBlock, line - e));
    }
  }
}

template <Beta kBeta>
void forward(const LrnArgs& a, int64_t begin, int64_t end) {
  const int64_t line = a.width * (a.is_nhwc ? a.channels : 1);
  each_block(a, begin, end, [&](int64_t at, int64_t h, int64_t first, int64_t n) {
    alignas(64) float sum[kBlock];
    box_sums(a, a.x + at, h, first, n, sum, [](float v) { return v * v; });
    const float* x = a.x + at + h * line + first;
    float* y = a.y + at + h * line + first;
    const float alpha = a.alpha, beta = a.beta;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      y[i] = x[i] * shrink_of<kBeta>(1.0f + alpha * sum[i], beta).power;
    }
  });
}

template <Beta kBeta>
void ratio(const LrnArgs& a, int64_t begin, int64_t end) {
  const int64_t line = a.width * (a.is_nhwc ? a.channels : 1);
  each_block(a, begin, end, [&](int64_t at, int64_t h, int64_t first, int64_t n) {
    alignas(64) float sum[kBlock];
    box_sums(a, a.x + at, h, first, n, sum, [](float v) { return v * v; });
    const int64_t from = at + h * line + first;
    const float *x = a.x + from, *dy = a.dy + from;
    float *shrink = a.shrink + from, *to = a.ratio + from;
    const float alpha = a.alpha, beta = a.beta;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const Shrink p = shrink_of<kBeta>(1.0f + alpha * sum[i], beta);
      shrink[i] = p.power;
      to[i] = dy[i] * x[i] * p.power_over;
    }
  });
}

}  // namespace

void lrn_within_forward(const LrnArgs& a, int64_t begin, int64_t end) {
  for_beta(a.beta, [&]<Beta kBeta>() { forward<kBeta>(a, begin, end); });
}

void lrn_within_ratio(const LrnArgs& a, int64_t begin, int64_t end) {
  for_beta(a.beta, [&]<Beta kBeta>() { ratio<kBeta>(a, begin, end); });
}

void lrn_within_backward(const LrnArgs& a, int64_t begin, int64_t end) {
  const int64_t line = a.width * (a.is_nhwc ? a.channels : 1);
  const float slope = 2.0f * a.alpha * a.beta;
  each_block(a, begin, end, [&](int64_t at, int64_t h, int64_t first, int64_t n) {
    alignas(64) float sum[kBlock];
    box_sums(a, a.ratio + at, h, first, n, sum, [](float v) { return v; });
    const int64_t from = at + h * line + first;
    const float *x = a.x + from, *dy = a.dy + from, *shrink = a.shrink + from;
    float* dx = a.dx + from;
    for (int64_t i = 0; !a.accumulate && i < n; ++i) dx[i] = 0;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] += dy[i] * shrink[i] - slope * x[i] * sum[i];
  });
}

}  // namespace crema::CREMA_ISA
