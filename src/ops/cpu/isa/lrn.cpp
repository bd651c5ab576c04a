// Local response normalisation (Krizhevsky et al. 2012, section 3.3). scale is always summed from
// squares anew, or kept in double and never below 0, so that it cannot fall below k. Backward needs
// x and dy only.
#include "ops/cpu/isa/loops.h"
#include "ops/cpu/isa/lrn_power.h"
#include "ops/cpu/isa/micro_tile.h"

namespace crema::CREMA_ISA {
namespace {

constexpr int64_t kBlock = 256;               // channels or places at a time
constexpr int64_t kReach = kMostLrnSize / 2;  // the farthest neighbour of the fast loops

int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

/// sum[i] = values[i] + ... + values[i + size - 1] for n sums.
__attribute__((always_inline)) inline void window_sums(const float* values, int64_t n, int64_t size,
                                                       float* sum) {
  if (size == 5) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      sum[i] = (values[i] + values[i + 1]) + (values[i + 2] + values[i + 3]) + values[i + 4];
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) sum[i] = values[i];
  for (int64_t j = 1; j < size; ++j) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) sum[i] += values[i + j];
  }
}

/// Lanes kShift to kShift + kWidth - 1 of two vectors side by side.
template <int kShift, int... kLanes>
__attribute__((always_inline)) inline Vector shifted(Vector a, Vector b,
                                                     std::integer_sequence<int, kLanes...>) {
  return __builtin_shufflevector(a, b, (kLanes + kShift)...);
}

/// window_sums() of size 5 about each of n values of whole vectors (their squares: kSquares), zero
/// outside: neighbours come from registers, since loads across two stores wait for both.
template <bool kSquares>
void five_sums(const float* values, int64_t n, float* sum) {
  constexpr auto kLanes = std::make_integer_sequence<int, kWidth>();
  const auto at = [=](int64_t i) {
    const Vector v = i < n ? load(values + i) : Vector{};
    return kSquares ? v * v : v;
  };
  Vector before{}, here = at(0);
  for (int64_t i = 0; i < n; i += kWidth) {
    const Vector behind = at(i + kWidth);
    store(sum + i,
          (shifted<kWidth - 2>(before, here, kLanes) + shifted<kWidth - 1>(before, here, kLanes)) +
              (here + shifted<1>(here, behind, kLanes)) + shifted<2>(here, behind, kLanes));
    before = here;
    here = behind;
  }
}

// ---- Across channels, nhwc: one pixel's channels are a row.

bool has_five_sums(const LrnArgs& a) {
  return a.size == 5 && a.channels <= kBlock && a.channels % kWidth == 0;
}

/// to[i] = x[first + i]^2, 0 outside the channels.
void squares_of(const float* x, int64_t first, int64_t count, int64_t channels, float* to) {
  const int64_t begin = greater(-first, 0), end = lesser(count, channels - first);
  for (int64_t i = 0; i < lesser(begin, count); ++i) to[i] = 0;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) to[i] = x[first + i] * x[first + i];
  for (int64_t i = greater(end, 0); i < count; ++i) to[i] = 0;
}

template <Beta kBeta>
void forward_row(const LrnArgs& a, const float* x, float* y) {
  alignas(64) float squares[kBlock + 2 * kReach], sum[kBlock];
  const int64_t reach = a.size / 2;
  for (int64_t c = 0; c < a.channels; c += kBlock) {
    const int64_t n = lesser(kBlock, a.channels - c);
    squares_of(x, c - reach, n + 2 * reach, a.channels, squares);
    window_sums(squares, n, a.size, sum);
    const float k = a.k, alpha = a.alpha, beta = a.beta;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      y[c + i] = x[c + i] * shrink_of<kBeta>(k + alpha * sum[i], beta).power;
  }
}

template <Beta kBeta>
void forward_five(const LrnArgs& a, const float* x, float* y) {
  alignas(64) float sum[kBlock];
  five_sums<true>(x, a.channels, sum);
  const float k = a.k, alpha = a.alpha, beta = a.beta;
#pragma omp simd
  for (int64_t i = 0; i < a.channels; ++i) {
    y[i] = x[i] * shrink_of<kBeta>(k + alpha * sum[i], beta).power;
  }
}

template <Beta kBeta>
void backward_five(const LrnArgs& a, const float* x, const float* dy, float* dx) {
  alignas(64) float sum[kBlock], shrink[kBlock], ratio[kBlock];
  const float k = a.k, alpha = a.alpha, beta = a.beta, slope = 2.0f * a.alpha * a.beta;
  five_sums<true>(x, a.channels, sum);
#pragma omp simd
  for (int64_t i = 0; i < a.channels; ++i) {
    const Shrink p = shrink_of<kBeta>(k + alpha * sum[i], beta);
    shrink[i] = p.power;
    ratio[i] = dy[i] * x[i] * p.power_over;
  }
  five_sums<false>(ratio, a.channels, sum);
  if (a.accumulate) {
#pragma omp simd
    for (int64_t i = 0; i < a.channels; ++i) dx[i] += dy[i] * shrink[i] - slope * x[i] * sum[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < a.channels; ++i) dx[i] = dy[i] * shrink[i] - slope * x[i] * sum[i];
  }
}

template <Beta kBeta>
void backward_row(const LrnArgs& a, const float* x, const float* dy, float* dx) {
  constexpr int64_t kWide = kBlock + 2 * kReach;
  alignas(64) float squares[kWide + 2 * kReach], sum[kWide], shrink[kWide], ratio[kWide];
  const int64_t reach = a.size / 2;
  const float k = a.k, alpha = a.alpha, beta = a.beta, slope = 2.0f * a.alpha * a.beta;
  for (int64_t c = 0; c < a.channels; c += kBlock) {
    const int64_t n = lesser(kBlock, a.channels - c), wide = n + 2 * reach, first = c - reach;
    squares_of(x, first - reach, wide + 2 * reach, a.channels, squares);
    window_sums(squares, wide, a.size, sum);
    const int64_t begin = greater(-first, 0), end = lesser(wide, a.channels - first);
    for (int64_t i = 0; i < begin; ++i) ratio[i] = 0;
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const float scale = k + alpha * sum[i];
      const Shrink p = shrink_of<kBeta>(scale, beta);
      shrink[i] = p.power;
      ratio[i] = dy[first + i] * x[first + i] * p.power_over;
    }
    for (int64_t i = end; i < wide; ++i) ratio[i] = 0;
    window_sums(ratio, n, a.size, sum);
    if (a.accumulate) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        dx[c + i] += dy[c + i] * shrink[reach + i] - slope * x[c + i] * sum[i];
      }
    } else {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        dx[c + i] = dy[c + i] * shrink[reach + i] - slope * x[c + i] * sum[i];
      }
    }
  }
}

// ---- Across channels, nchw: blocks of one picture's places, channel by channel.

constexpr int64_t kPlaces = 64;

/// Sum of squares around channel c of n places.
__attribute__((always_inline)) inline void sum_around(const LrnArgs& a, const float* x, int64_t c,
                                                      int64_t n, float* sum) {
  const int64_t reach = a.size / 2;
  for (int64_t i = 0; i < n; ++i) sum[i] = 0;
  for (int64_t j = greater(c - reach, 0); j <= lesser(c + reach, a.channels - 1); ++j) {
    const float* from = x + j * a.plane;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) sum[i] += from[i] * from[i];
  }
}

template <Beta kBeta>
void forward_places(const LrnArgs& a, const float* x, float* y, int64_t n) {
  alignas(64) float sum[kPlaces];
  for (int64_t c = 0; c < a.channels; ++c) {
    sum_around(a, x, c, n, sum);
    const float* from = x + c * a.plane;
    float* to = y + c * a.plane;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      to[i] = from[i] * shrink_of<kBeta>(a.k + a.alpha * sum[i], a.beta).power;
  }
}

template <Beta kBeta>
void backward_places(const LrnArgs& a, const float* x, const float* dy, float* dx, int64_t n) {
  // The last `size` channels' ratios and factors, channel c at row c % size.
  alignas(64) float ratio[kMostLrnSize][kPlaces] = {}, shrink[kMostLrnSize][kPlaces] = {};
  alignas(64) float sum[kPlaces];
  const int64_t reach = a.size / 2;
  const float slope = 2.0f * a.alpha * a.beta;
  for (int64_t ahead = 0; ahead < a.channels + reach; ++ahead) {
    float* r = ratio[ahead % a.size];
    if (ahead < a.channels) {
      sum_around(a, x, ahead, n, sum);
      float* s = shrink[ahead % a.size];
      const float *from = x + ahead * a.plane, *g = dy + ahead * a.plane;
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        const float scale = a.k + a.alpha * sum[i];
        const Shrink p = shrink_of<kBeta>(scale, a.beta);
        s[i] = p.power;
        r[i] = g[i] * from[i] * p.power_over;
      }
    } else {
      for (int64_t i = 0; i < n; ++i) r[i] = 0;
    }
    const int64_t c = ahead - reach;
    if (c < 0) continue;
    for (int64_t i = 0; i < n; ++i) sum[i] = 0;
    for (int64_t j = 0; j < a.size; ++j) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) sum[i] += ratio[j][i];
    }
    const float *from = x + c * a.plane, *g = dy + c * a.plane, *s = shrink[c % a.size];
    float* to = dx + c * a.plane;
    const float keep = a.accumulate ? 1.0f : 0.0f;
    for (int64_t i = 0; keep == 0 && i < n; ++i) to[i] = 0;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] += g[i] * s[i] - slope * from[i] * sum[i];
  }
}

// ---- Across channels, any size and layout: running sums in double.

/// Sum of squares over the window of a channel, moved along the channels.
class RunningScale {
 public:
  RunningScale(const LrnArgs& a, const float* x, int64_t stride)
      : a_(a), x_(x), stride_(stride), reach_(a.size / 2) {
    for (int64_t c = 0; c < lesser(reach_, a.channels); ++c) sum_ += square(c);
  }
  /// scale at the next channel, from 0 on.
  float next() {
    if (c_ + reach_ < a_.channels) sum_ += square(c_ + reach_);
    if (c_ - reach_ - 1 >= 0) sum_ -= square(c_ - reach_ - 1);
    sum_ = sum_ < 0 ? 0 : sum_;
    ++c_;
    return a_.k + a_.alpha * static_cast<float>(sum_);
  }

 private:
  double square(int64_t c) const {
    const auto v = static_cast<double>(x_[c * stride_]);
    return v * v;
  }
  const LrnArgs& a_;
  const float* x_;
  int64_t stride_, reach_, c_ = 0;
  double sum_ = 0;
};

void forward_place(const LrnArgs& a, const float* x, float* y, int64_t stride) {
  RunningScale scale(a, x, stride);
  for (int64_t c = 0; c < a.channels; ++c) {
    y[c * stride] = x[c * stride] * shrink_of<Beta::any>(scale.next(), a.beta).power;
  }
}

void backward_place(const LrnArgs& a, const float* x, const float* dy, float* dx, int64_t stride) {
  RunningScale ahead(a, x, stride), here(a, x, stride), behind(a, x, stride);
  const int64_t reach = a.size / 2;
  const auto ratio = [&](RunningScale& running, int64_t c) {
    const float scale = running.next();
    return static_cast<double>(dy[c * stride] * x[c * stride] *
                               shrink_of<Beta::any>(scale, a.beta).power_over);
  };
  double sum = 0;
  for (int64_t c = 0; c < lesser(reach, a.channels); ++c) sum += ratio(ahead, c);
  for (int64_t c = 0; c < a.channels; ++c) {
    if (c + reach < a.channels) sum += ratio(ahead, c + reach);
    if (c - reach - 1 >= 0) sum -= ratio(behind, c - reach - 1);
    const float v = dy[c * stride] * shrink_of<Beta::any>(here.next(), a.beta).power -
                    2.0f * a.alpha * a.beta * x[c * stride] * static_cast<float>(sum);
    dx[c * stride] = a.accumulate ? dx[c * stride] + v : v;
  }
}

/// Calls visit(first element, places) for blocks of the places [begin, end) of nchw, counted
/// through the batch.
template <class Visit>
__attribute__((always_inline)) inline void each_block(const LrnArgs& a, int64_t begin, int64_t end,
                                                      const Visit& visit) {
  while (begin < end) {
    const int64_t place = begin % a.plane;
    const int64_t n = lesser(lesser(kPlaces, a.plane - place), end - begin);
    visit(begin / a.plane * a.channels * a.plane + place, n);
    begin += n;
  }
}

}  // namespace

void lrn_forward(const LrnArgs& a, int64_t begin, int64_t end) {
  if (a.size > kMostLrnSize) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at =
          a.is_nhwc ? i * a.channels : i / a.plane * a.channels * a.plane + i % a.plane;
      forward_place(a, a.x + at, a.y + at, a.is_nhwc ? 1 : a.plane);
    }
    return;
  }
  for_beta(a.beta, [&]<Beta kBeta>() {
    if (a.is_nhwc) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i * a.channels;
        has_five_sums(a) ? forward_five<kBeta>(a, a.x + at, a.y + at)
                         : forward_row<kBeta>(a, a.x + at, a.y + at);
      }
      return;
    }
    each_block(a, begin, end,
               [&](int64_t at, int64_t n) { forward_places<kBeta>(a, a.x + at, a.y + at, n); });
  });
}

void lrn_backward(const LrnArgs& a, int64_t begin, int64_t end) {
  if (a.size > kMostLrnSize) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at =
          a.is_nhwc ? i * a.channels : i / a.plane * a.channels * a.plane + i % a.plane;
      backward_place(a, a.x + at, a.dy + at, a.dx + at, a.is_nhwc ? 1 : a.plane);
    }
    return;
  }
  for_beta(a.beta, [&]<Beta kBeta>() {
    if (a.is_nhwc) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i * a.channels;
        has_five_sums(a) ? backward_five<kBeta>(a, a.x + at, a.dy + at, a.dx + at)
                         : backward_row<kBeta>(a, a.x + at, a.dy + at, a.dx + at);
      }
      return;
    }
    each_block(a, begin, end, [&](int64_t at, int64_t n) {
      backward_places<kBeta>(a, a.x + at, a.dy + at, a.dx + at, n);
    });
  });
}

}  // namespace crema::CREMA_ISA
