// Pooling in nhwc, forward: a row of outputs at a time, whose windows share their planes and rows;
// of one output position blocks of channels.
#include "ops/cpu/isa/loops.h"
#include "ops/cpu/isa/pool_channels.h"

namespace crema::CREMA_ISA {
namespace {

/// Planes and rows of x under a row of windows. first: element 0 of their pixels 0; t: which
/// element of the window is there where the window begins with pixel 0.
struct Strip {
  int64_t planes, rows, plane_step, row_step;
  const float* first;
  int32_t t, t_plane_step, t_row_step;
};

/// An output position and the columns of its window, the first of which begins at x with element t.
struct Output {
  Place at;
  int64_t position;  // in the batch
  const float* x;
  int32_t t;
  int64_t columns;
};

Strip strip_of(const PoolShape& s, const Place& o, const float* x) {
  const Reach d = window_of(s, 0, o.v[0]), h = window_of(s, 1, o.v[1]);
  const int64_t row = s.size[2] * s.channels, plane = s.kernel[1] * s.kernel[2];
  const int64_t t = (d.begin - d.first) * plane + (h.begin - h.first) * s.kernel[2];
  return {.planes = d.end - d.begin,
          .rows = h.end - h.begin,
          .plane_step = s.size[1] * row,
          .row_step = row,
          .first = x + (d.begin * s.size[1] + h.begin) * row,
          .t = static_cast<int32_t>(t),
          .t_plane_step = static_cast<int32_t>(plane),
          .t_row_step = static_cast<int32_t>(s.kernel[2])};
}

/// Calls visit(first of some channels, element of the window) over the window in order: kColumns of
/// one plane, or any number where that is 0.
template <int kColumns, class Visit>
__attribute__((always_inline)) inline void over_strip(const Strip& strip, const Output& o,
                                                      int64_t channels, const Visit& visit) {
  if constexpr (kColumns > 0) {
    const float* x = o.x;
    IntVector t = IntVector{} + o.t;
    const IntVector t_step = IntVector{} + (strip.t_row_step - kColumns);
    const int64_t step = strip.row_step;
    for (int64_t rows = strip.rows; rows > 0; --rows, x += step, t += t_step) {
#pragma GCC unroll 3
      for (int64_t j = 0; j < kColumns; ++j, t += 1) visit(x + j * channels, t);
    }
    return;
  }
  for (int64_t p = 0; p < strip.planes; ++p) {
    for (int64_t r = 0; r < strip.rows; ++r) {
      const float* x = o.x + p * strip.plane_step + r * strip.row_step;
      const int64_t t = o.t + p * strip.t_plane_step + r * strip.t_row_step;
      for (int64_t j = 0; j < o.columns; ++j) {
        visit(x + j * channels, IntVector{} + static_cast<int32_t>(t + j));
      }
    }
  }
}

/// Which pixel of x's plane won, for all blocks of an output.
template <int kBlocks>
__attribute__((noinline)) void keep_mask(const PoolArgs& a, const Output& o, const Channels& c,
                                         const IntVector* winner) {
  for (int b = 0; b < kBlocks; ++b) {
    float* to = a.mask + o.position * a.shape.channels + c.first + c.offset<kBlocks>(b);
    for (int i = 0; i < kWidth; ++i) {
      to[i] = static_cast<float>(position_of(a.shape, o.at, winner[b][i]));
    }
  }
}

template <int kBlocks>
__attribute__((always_inline)) inline void keep_winners(const PoolArgs& a, int64_t position,
                                                        const Channels& c,
                                                        const IntVector (&winner)[kBlocks]) {
  if (a.has_wide_winner) {
    int32_t* to = static_cast<int32_t*>(a.winner) + position * a.shape.channels + c.first;
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) store(to + c.offset<kBlocks>(b), winner[b]);
    return;
  }
  IntVector bytes = winner[0] & 255;
#pragma GCC unroll 4
  for (int b = 1; b < kBlocks; ++b) bytes |= (winner[b] & 255) << 8 * b;
  uint8_t* to = packed_winners(a, position, c);
  __builtin_prefetch(to + kStoreAhead, 1);
  store(to, bytes);
}

template <int kBlocks, int kColumns>
void max_block(const PoolArgs& a, const Strip& strip, const Output& o, const Channels& c) {
  Vector best[kBlocks];
  IntVector winner[kBlocks];
  float* y = a.y + o.position * a.shape.channels + c.first;
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    best[b] = Vector{} + kLowest;
    winner[b] = IntVector{} - 1;
    __builtin_prefetch(y + b * kWidth + kStoreAhead, 1);
  }
  const int64_t first = c.first, last = c.last;
  over_strip<kColumns>(strip, o, a.shape.channels, [&](const float* x, IntVector t) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      const Vector v = load(x + first + (b == kBlocks - 1 ? last : b * kWidth));
      const IntVector wins = v > best[b];
      best[b] = wins ? v : best[b];
      winner[b] = wins ? t : winner[b];
    }
  });
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) store(y + c.offset<kBlocks>(b), best[b]);
  if (a.winner) keep_winners<kBlocks>(a, o.position, c, winner);
  if (a.mask) {
    IntVector kept[kBlocks];
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) kept[b] = winner[b];
    keep_mask<kBlocks>(a, o, c, kept);
  }
}

template <int kBlocks, int kColumns>
void mean_block(const PoolArgs& a, const Strip& strip, const Output& o, const Channels& c) {
  Vector sum[kBlocks];
  float* y = a.y + o.position * a.shape.channels + c.first;
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    sum[b] = Vector{};
    __builtin_prefetch(y + b * kWidth + kStoreAhead, 1);
  }
  const int64_t first = c.first, last = c.last;
  over_strip<kColumns>(strip, o, a.shape.channels, [&](const float* x, IntVector) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      sum[b] += load(x + first + (b == kBlocks - 1 ? last : b * kWidth));
    }
  });
  const float scale = 1.0f / divisor_of(a.shape, o.at);
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) store(y + c.offset<kBlocks>(b), sum[b] * scale);
}

/// Fetches the pixels under the next row of windows below those of one window: rows are read in
/// turns, which the processor does not foresee.
__attribute__((always_inline)) inline void fetch_below(const PoolShape& s, const Strip& strip,
                                                       int64_t column) {
  const float* x = strip.first + (strip.rows * s.size[2] + column) * s.channels;
  for (int64_t r = 0; r < s.stride[1]; ++r, x += strip.row_step) {
    for (int64_t i = 0; i < s.stride[2] * s.channels; i += 16) __builtin_prefetch(x + i);
  }
}

/// All channels of one output position of picture n.
__attribute__((always_inline)) inline void forward_position(const PoolArgs& a, const Strip& strip,
                                                            const Output& o, int64_t n) {
  const PoolShape& s = a.shape;
  const int64_t channels = s.channels, plane = s.out[0] * s.out[1] * s.out[2];
  const float* picture = a.x + n * s.size[0] * s.size[1] * s.size[2] * channels;
  const auto single = [&](int64_t c) {
    const int64_t element = (n * channels + c) * plane + o.position - n * plane;
    forward_element(a, o.at, picture + c, channels, o.position * channels + c,
                    static_cast<uint64_t>(element));
  };
  if (a.kind == PoolKind::stochastic) {
    for (int64_t c = 0; c < channels; ++c) single(c);
    return;
  }
  with_columns(s.kernel[0] == 1 ? o.columns : 0, [&]<int kColumns>() {
    const auto blocks = [&]<int kBlocks>(const Channels& c) {
      a.kind == PoolKind::max ? max_block<kBlocks, kColumns>(a, strip, o, c)
                              : mean_block<kBlocks, kColumns>(a, strip, o, c);
    };
    over_channels(channels, blocks, single);
  });
}

}  // namespace

void pool_forward_nhwc(const PoolArgs& a, int64_t begin, int64_t end) {
  const PoolShape& s = a.shape;
  const int64_t in = s.size[0] * s.size[1] * s.size[2] * s.channels;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t n = row / (s.out[0] * s.out[1]);
    Output o{{{row / s.out[1] % s.out[0], row % s.out[1], 0}}, row * s.out[2], nullptr, 0, 0};
    const Strip strip = strip_of(s, o.at, a.x + n * in);
    for (; o.at.v[2] < s.out[2]; ++o.at.v[2], ++o.position) {
      const Reach w = window_of(s, 2, o.at.v[2]);
      o.x = strip.first + w.begin * s.channels;
      o.t = strip.t + static_cast<int32_t>(w.begin - w.first);
      o.columns = w.end - w.begin;
      fetch_below(s, strip, w.begin);
      forward_position(a, strip, o, n);
    }
  }
}

}  // namespace crema::CREMA_ISA
