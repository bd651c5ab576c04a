// Convolutions in nhwc with 3 x 3 windows whose groups have one channel each, forward and the data
// gradient: some outputs side by side at a time, vectors run over channels.
#include "ops/cpu/isa/loops.h"
#include "ops/cpu/isa/micro_tile.h"

namespace crema::CREMA_ISA {
namespace {

constexpr int kTaps = 3;               // along an axis
constexpr int kTogether = 4;           // outputs whose sums stay in registers
constexpr int64_t kStoreAhead = 1024;  // elements: a store that misses stalls the ones behind it

/// Rows of the window that lie in the picture: `count` of them from `row` of the source on, with
/// weights step_w apart; of a row's neighbours the source's pixels lie `channels` apart.
struct Rows {
  const float* x;  // column 0 of the first one
  const float* w;  // its taps [kTaps, channels]
  int64_t count, x_step, w_step, below;
};

__attribute__((always_inline)) inline Vector finished(const DepthwiseArgs& a, Vector sum,
                                                      const float* y) {
  if (a.accumulate) return load(y) + sum;
  if (a.slope == 1) return sum;
  const Vector low = a.slope == 0 ? Vector{} : sum * a.slope;
  return sum < Vector{} ? low : sum;
}

__attribute__((always_inline)) inline Vector started(const DepthwiseArgs& a, int64_t c) {
  return a.bias ? load(a.bias + c) : Vector{};
}

/// kTogether outputs from column `at` of the source on, all of whose windows lie in it.
template <int kStride>
void block(const DepthwiseArgs& a, const Rows& rows, int64_t at, float* y) {
  constexpr int kColumns = (kTogether - 1) * kStride + kTaps;
  const int64_t channels = a.channels;
  for (int64_t c = 0; c < channels; c += kWidth) {
    Vector sum[kTogether];
    const Vector start = started(a, c);
#pragma GCC unroll 4
    for (int o = 0; o < kTogether; ++o) {
      sum[o] = start;
      __builtin_prefetch(y + o * channels + c + kStoreAhead, 1);
    }
    const float *x = rows.x + at * channels + c, *w = rows.w + c;
    const float* below = x + rows.below;
#pragma GCC unroll 2
    for (int r = 0; r < kStride; ++r, below += rows.x_step) {
#pragma GCC unroll 8
      for (int j = 0; j < kTogether * kStride; ++j) __builtin_prefetch(below + j * channels);
    }
    for (int64_t r = 0; r < rows.count; ++r, x += rows.x_step, w += rows.w_step) {
      const Vector taps[kTaps] = {load(w), load(w + channels), load(w + 2 * channels)};
#pragma GCC unroll 9
      for (int j = 0; j < kColumns; ++j) {
        const Vector v = load(x + j * channels);
#pragma GCC unroll 3
        for (int t = 0; t < kTaps; ++t) {
          if (j >= t && (j - t) % kStride == 0 && (j - t) / kStride < kTogether) {
            sum[(j - t) / kStride] += v * taps[t];
          }
        }
      }
    }
#pragma GCC unroll 4
    for (int o = 0; o < kTogether; ++o) {
      store(y + o * channels + c, finished(a, sum[o], y + o * channels + c));
    }
  }
}

/// One output whose taps [begin, end) of a row lie in the source, tap 0 at column `at`.
void single(const DepthwiseArgs& a, const Rows& rows, int64_t at, float* y) {
  const int64_t channels = a.channels;
  const int64_t begin = at < 0 ? -at : 0, end = lesser(kTaps, a.width - at);
  for (int64_t c = 0; c < channels; c += kWidth) {
    Vector sum = started(a, c);
    for (int64_t r = 0; r < rows.count; ++r) {
      const float* x = rows.x + r * rows.x_step + at * channels + c;
      const float* w = rows.w + r * rows.w_step + c;
      for (int64_t t = begin; t < end; ++t) sum += load(x + t * channels) * load(w + t * channels);
    }
    store(y + c, finished(a, sum, y + c));
  }
}

/// Row oh of picture n.
template <int kStride>
void forward_row(const DepthwiseArgs& a, int64_t n, int64_t oh) {
  const int64_t row = a.width * a.channels, first = oh * kStride - a.pad[0];
  const int64_t begin = first < 0 ? -first : 0, end = lesser(kTaps, a.height - first);
  const Rows rows{.x = a.x + (n * a.height + first + begin) * row,
                  .w = a.w + begin * kTaps * a.channels,
                  .count = end - begin,
                  .x_step = row,
                  .w_step = kTaps * a.channels,
                  .below = (end - begin) * row};
  float* y = a.y + (n * a.out_height + oh) * a.out_width * a.channels;
  constexpr int64_t kSpan = (kTogether - 1) * kStride + kTaps;
  for (int64_t ow = 0; ow < a.out_width;) {
    const int64_t at = ow * kStride - a.pad[1];
    if (at >= 0 && at + kSpan <= a.width && ow + kTogether <= a.out_width) {
      block<kStride>(a, rows, at, y + ow * a.channels);
      ow += kTogether;
    } else {
      single(a, rows, at, y + ow * a.channels);
      ++ow;
    }
  }
}

// ---- The data gradient of windows that move by 2. x is dy here and y is dx; tap t of a row gives
// column 2 * o - pad + t of dx a share of column o of dy.

/// Columns [2 * o - pad, + 2 * kTogether) of dx, whose every reader lies in dy.
void spread_block(const DepthwiseArgs& a, const Rows& rows, int64_t o, float* y) {
  const int64_t channels = a.channels;
  for (int64_t c = 0; c < channels; c += kWidth) {
    Vector sum[2 * kTogether];
#pragma GCC unroll 8
    for (int i = 0; i < 2 * kTogether; ++i) {
      sum[i] = Vector{};
      __builtin_prefetch(y + i * channels + c + kStoreAhead, 1);
    }
    const float *x = rows.x + (o - 1) * channels + c, *w = rows.w + c;
    const float* below = x + rows.below;
    for (int64_t r = 0; r < rows.count; ++r, x += rows.x_step, w += rows.w_step) {
      const Vector taps[kTaps] = {load(w), load(w + channels), load(w + 2 * channels)};
#pragma GCC unroll 5
      for (int j = 0; j <= kTogether; ++j) {
        const Vector v = load(x + j * channels);
        if (j < kTogether) sum[2 * j] += v * taps[2];
        if (j > 0) {
          sum[2 * j - 2] += v * taps[0];
          sum[2 * j - 1] += v * taps[1];
        }
      }
    }
#pragma GCC unroll 4
    for (int j = 0; j < kTogether; ++j) __builtin_prefetch(below + j * channels);
#pragma GCC unroll 8
    for (int i = 0; i < 2 * kTogether; ++i) {
      store(y + i * channels + c, finished(a, sum[i], y + i * channels + c));
    }
  }
}

/// Column iw of dx.
void spread_single(const DepthwiseArgs& a, const Rows& rows, int64_t iw, float* y) {
  const int64_t channels = a.channels, at = iw + a.pad[1];
  for (int64_t c = 0; c < channels; c += kWidth) {
    Vector sum{};
    for (int64_t r = 0; r < rows.count; ++r) {
      for (int64_t t = at % 2; t < kTaps && t <= at; t += 2) {
        const int64_t o = (at - t) / 2;
        if (o >= a.width) continue;
        sum += load(rows.x + r * rows.x_step + o * channels + c) *
               load(rows.w + r * rows.w_step + t * channels + c);
      }
    }
    store(y + c, finished(a, sum, y + c));
  }
}

/// Row ih of picture n of dx.
void spread_row(const DepthwiseArgs& a, int64_t n, int64_t ih) {
  const int64_t row = a.width * a.channels, at = ih + a.pad[0];
  // Rows (at - t) / 2 of dy for taps t of the same parity as at.
  int64_t first = at % 2, count = 0;
  while (first < kTaps && (at - first) / 2 >= a.height) first += 2;
  for (int64_t t = first; t < kTaps && t <= at; t += 2) ++count;
  const Rows rows{.x = a.x + (n * a.height + (at - first) / 2) * row,
                  .w = a.w + first * kTaps * a.channels,
                  .count = count,
                  .x_step = -row,
                  .w_step = 2 * kTaps * a.channels,
                  .below = row};
  float* y = a.y + (n * a.out_height + ih) * a.out_width * a.channels;
  for (int64_t iw = 0; iw < a.out_width;) {
    const int64_t e = iw + a.pad[1], o = e / 2;
    if (e % 2 == 0 && o >= 1 && o + kTogether <= a.width && iw + 2 * kTogether <= a.out_width) {
      spread_block(a, rows, o, y + iw * a.channels);
      iw += 2 * kTogether;
    } else {
      spread_single(a, rows, iw, y + iw * a.channels);
      ++iw;
    }
  }
}

}  // namespace

void depthwise(const DepthwiseArgs& a, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t n = i / a.out_height, row = i % a.out_height;
    if (a.spreads) {
      spread_row(a, n, row);
    } else if (a.stride == 1) {
      forward_row<1>(a, n, row);
    } else {
      forward_row<2>(a, n, row);
    }
  }
}

}  // namespace crema::CREMA_ISA
