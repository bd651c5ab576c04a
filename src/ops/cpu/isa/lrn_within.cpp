// Local response normalisation within a channel: box sums over a size x size window, zero outside
// the picture. A line is a row of pixels: w values in nchw, w * c values in nhwc, where neighbours
// lie c apart.
#include "ops/cpu/isa/loops.h"
#include "ops/functors.h"

namespace crema::CREMA_ISA {
namespace {

constexpr int64_t kBlock = 512;

int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

float power(float scale, float beta) {
  if (beta == 0.75f) {
    const float root = root_of(scale);
    return 1.0f / (root * root_of(root));
  }
  return exp_of(-beta * log_of(scale));
}

/// sum[i] = box sum of f(x) at elements [first, first + n) of line h. x: the picture (nhwc) or
/// plane (nchw) that the line belongs to.
template <class F>
__attribute__((always_inline)) inline void box_sums(const LrnArgs& a, const float* x, int64_t h,
                                                    int64_t first, int64_t n, float* sum,
                                                    const F& f) {
  const int64_t reach = a.size / 2, step = a.is_nhwc ? a.channels : 1, line = a.width * step;
  for (int64_t i = 0; i < n; ++i) sum[i] = 0;
  for (int64_t ih = greater(h - reach, 0); ih <= lesser(h + reach, a.height - 1); ++ih) {
    const float* from = x + ih * line;
    const int64_t farthest = lesser(reach, a.width - 1);
    for (int64_t j = -farthest; j <= farthest; ++j) {
      // Element e of the line reads e + j * step where that is inside.
      const int64_t begin = greater(first, -j * step), end = lesser(first + n, line - j * step);
      const float* shifted = from + j * step;
#pragma omp simd
      for (int64_t e = begin; e < end; ++e) sum[e - first] += f(shifted[e]);
    }
  }
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

}  // namespace

void lrn_within_forward(const LrnArgs& a, int64_t begin, int64_t end) {
  const int64_t line = a.width * (a.is_nhwc ? a.channels : 1);
  each_block(a, begin, end, [&](int64_t at, int64_t h, int64_t first, int64_t n) {
    alignas(64) float sum[kBlock];
    box_sums(a, a.x + at, h, first, n, sum, [](float v) { return v * v; });
    const int64_t from = at + h * line + first;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      a.y[from + i] = a.x[from + i] * power(1.0f + a.alpha * sum[i], a.beta);
    }
  });
}

void lrn_within_ratio(const LrnArgs& a, int64_t begin, int64_t end) {
  const int64_t line = a.width * (a.is_nhwc ? a.channels : 1);
  each_block(a, begin, end, [&](int64_t at, int64_t h, int64_t first, int64_t n) {
    alignas(64) float sum[kBlock];
    box_sums(a, a.x + at, h, first, n, sum, [](float v) { return v * v; });
    const int64_t from = at + h * line + first;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const float scale = 1.0f + a.alpha * sum[i];
      const float shrink = power(scale, a.beta);
      a.shrink[from + i] = shrink;
      a.ratio[from + i] = a.dy[from + i] * a.x[from + i] * shrink / scale;
    }
  });
}

void lrn_within_backward(const LrnArgs& a, int64_t begin, int64_t end) {
  const int64_t line = a.width * (a.is_nhwc ? a.channels : 1);
  const float slope = 2.0f * a.alpha * a.beta;
  each_block(a, begin, end, [&](int64_t at, int64_t h, int64_t first, int64_t n) {
    alignas(64) float sum[kBlock];
    box_sums(a, a.ratio + at, h, first, n, sum, [](float v) { return v; });
    const int64_t from = at + h * line + first;
    float* dx = a.dx + from;
    for (int64_t i = 0; !a.accumulate && i < n; ++i) dx[i] = 0;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      dx[i] += a.dy[from + i] * a.shrink[from + i] - slope * a.x[from + i] * sum[i];
    }
  });
}

}  // namespace crema::CREMA_ISA
