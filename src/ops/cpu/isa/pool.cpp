// Pooling in three spatial axes (fewer have leading axes of size 1). nhwc works on blocks of
// channels, nchw on single planes. Backward gathers: each element of dx is written once.
#include "base/philox.h"
#include "ops/cpu/isa/loops.h"

namespace crema::CREMA_ISA {
namespace {

constexpr int64_t kBlock = 64;  // channels at a time
constexpr float kLowest = -3.402823466e38f;

int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

/// What output o's window covers along an axis: [begin, end) of x; first is where it starts,
/// padding counted.
struct Reach {
  int64_t first, begin, end;
};

Reach window_of(const PoolShape& s, int axis, int64_t o) {
  const int64_t first = o * s.stride[axis] - s.pad[axis];
  return {first, greater(first, 0), lesser(first + s.kernel[axis], s.size[axis])};
}

/// Which outputs [begin, end) have input i in their window along an axis.
Reach readers_of(const PoolShape& s, int axis, int64_t i) {
  const int64_t past = i + s.pad[axis] - s.kernel[axis];
  const int64_t begin = past < 0 ? 0 : past / s.stride[axis] + 1;
  return {0, begin, lesser((i + s.pad[axis]) / s.stride[axis] + 1, s.out[axis])};
}

/// Length of the window clipped to the padded picture: Caffe's divisor.
int64_t counted(const PoolShape& s, int axis, int64_t o) {
  const int64_t first = o * s.stride[axis] - s.pad[axis];
  return lesser(first + s.kernel[axis], s.size[axis] + s.pad[axis]) - first;
}

struct Place {
  int64_t v[3];
};

Place place_of(const int64_t* sizes, int64_t i) {
  return {{i / (sizes[1] * sizes[2]), i / sizes[2] % sizes[1], i % sizes[2]}};
}

float divisor_of(const PoolShape& s, const Place& o) {
  return static_cast<float>(counted(s, 0, o.v[0]) * counted(s, 1, o.v[1]) * counted(s, 2, o.v[2]));
}

/// Calls visit(position in x's plane, element of the window) over output o's window in order.
template <class Visit>
__attribute__((always_inline)) inline void over_window(const PoolShape& s, const Place& o,
                                                       const Visit& visit) {
  const Reach d = window_of(s, 0, o.v[0]), h = window_of(s, 1, o.v[1]), w = window_of(s, 2, o.v[2]);
  for (int64_t id = d.begin; id < d.end; ++id) {
    for (int64_t ih = h.begin; ih < h.end; ++ih) {
      const int64_t at = (id * s.size[1] + ih) * s.size[2];
      const int64_t t = ((id - d.first) * s.kernel[1] + ih - h.first) * s.kernel[2] - w.first;
      for (int64_t iw = w.begin; iw < w.end; ++iw) visit(at + iw, static_cast<int32_t>(t + iw));
    }
  }
}

/// Calls visit(output place, element of its window) over all windows that hold input i.
template <class Visit>
__attribute__((always_inline)) inline void over_readers(const PoolShape& s, const Place& i,
                                                        const Visit& visit) {
  const Reach d = readers_of(s, 0, i.v[0]), h = readers_of(s, 1, i.v[1]),
              w = readers_of(s, 2, i.v[2]);
  for (int64_t od = d.begin; od < d.end; ++od) {
    const int64_t td = i.v[0] - od * s.stride[0] + s.pad[0];
    for (int64_t oh = h.begin; oh < h.end; ++oh) {
      const int64_t th = td * s.kernel[1] + i.v[1] - oh * s.stride[1] + s.pad[1];
      for (int64_t ow = w.begin; ow < w.end; ++ow) {
        const int64_t tw = i.v[2] - ow * s.stride[2] + s.pad[2];
        visit((od * s.out[1] + oh) * s.out[2] + ow, static_cast<int32_t>(th * s.kernel[2] + tw));
      }
    }
  }
}

/// The flat position in x's plane of element t of output o's window; -1 where none won.
int64_t position_of(const PoolShape& s, const Place& o, int32_t t) {
  if (t < 0) return -1;
  const int64_t w = o.v[2] * s.stride[2] - s.pad[2] + t % s.kernel[2];
  const int64_t h = o.v[1] * s.stride[1] - s.pad[1] + t / s.kernel[2] % s.kernel[1];
  const int64_t d = o.v[0] * s.stride[0] - s.pad[0] + t / s.kernel[2] / s.kernel[1];
  return (d * s.size[1] + h) * s.size[2] + w;
}

// ---- The winning element of a window, kept from forward to backward: a byte where that is enough.

void keep_winner(const PoolArgs& a, int64_t at, int32_t t) {
  if (a.has_wide_winner) {
    static_cast<int32_t*>(a.winner)[at] = t;
  } else {
    static_cast<uint8_t*>(a.winner)[at] = static_cast<uint8_t>(t);
  }
}

int32_t winner_at(const PoolArgs& a, int64_t at) {
  return a.has_wide_winner ? static_cast<const int32_t*>(a.winner)[at]
                           : static_cast<const uint8_t*>(a.winner)[at];
}

// ---- One output element: nchw, and stochastic pooling in both orders.

struct Sample {
  float value;
  int32_t t;
};

/// Strides of x's plane: 1 in nchw, channels in nhwc.
Sample max_of(const PoolShape& s, const Place& o, const float* x, int64_t stride) {
  Sample best{kLowest, -1};
  over_window(s, o, [&](int64_t at, int32_t t) {
    if (x[at * stride] > best.value) best = {x[at * stride], t};
  });
  return best;
}

float mean_of(const PoolShape& s, const Place& o, const float* x, int64_t stride) {
  float sum = 0;
  over_window(s, o, [&](int64_t at, int32_t) { sum += x[at * stride]; });
  return sum / divisor_of(s, o);
}

/// Zeiler and Fergus 2013: an element by its share of the sum, or the expectation of that.
Sample sample_of(const PoolArgs& a, const Place& o, const float* x, int64_t stride,
                 uint64_t element) {
  float sum = 0, squares = 0;
  over_window(a.shape, o, [&](int64_t at, int32_t) {
    sum += x[at * stride];
    squares += x[at * stride] * x[at * stride];
  });
  if (!a.train) return {sum > 0 ? squares / sum : 0.0f, -1};
  const Philox4 block = philox(a.seed, element / 4, a.forward_count);
  const float limit = uniform01(block.v[element % 4]) * sum;
  Sample first{0, -1}, chosen{0, -1};
  float passed = 0;
  over_window(a.shape, o, [&](int64_t at, int32_t t) {
    const float v = x[at * stride];
    passed += v;
    if (first.t < 0) first = {v, t};
    if (chosen.t < 0 && passed > limit) chosen = {v, t};
  });
  return chosen.t < 0 ? first : chosen;
}

void forward_element(const PoolArgs& a, const Place& o, const float* x, int64_t stride, int64_t to,
                     uint64_t element) {
  if (a.kind == PoolKind::average) {
    a.y[to] = mean_of(a.shape, o, x, stride);
    return;
  }
  const Sample s =
      a.kind == PoolKind::max ? max_of(a.shape, o, x, stride) : sample_of(a, o, x, stride, element);
  a.y[to] = s.value;
  if (a.winner) keep_winner(a, to, s.t);
  if (a.mask) a.mask[to] = static_cast<float>(position_of(a.shape, o, s.t));
}

// ---- nhwc: blocks of channels of one output or input position.

void max_block(const PoolArgs& a, const Place& o, const float* x, int64_t n, int64_t to) {
  const int64_t channels = a.shape.channels;
  alignas(64) float best[kBlock];
  alignas(64) int32_t winner[kBlock];
  for (int64_t c = 0; c < n; ++c) best[c] = kLowest;
  for (int64_t c = 0; c < n; ++c) winner[c] = -1;
  over_window(a.shape, o, [&](int64_t at, int32_t t) {
    const float* from = x + at * channels;
#pragma omp simd
    for (int64_t c = 0; c < n; ++c) {
      const bool wins = from[c] > best[c];
      best[c] = wins ? from[c] : best[c];
      winner[c] = wins ? t : winner[c];
    }
  });
  for (int64_t c = 0; c < n; ++c) a.y[to + c] = best[c];
  if (a.winner && !a.has_wide_winner) {
    auto* bytes = static_cast<uint8_t*>(a.winner) + to;
#pragma omp simd
    for (int64_t c = 0; c < n; ++c) bytes[c] = static_cast<uint8_t>(winner[c]);
  } else if (a.winner) {
    for (int64_t c = 0; c < n; ++c) keep_winner(a, to + c, winner[c]);
  }
  if (!a.mask) return;
  for (int64_t c = 0; c < n; ++c) {
    a.mask[to + c] = static_cast<float>(position_of(a.shape, o, winner[c]));
  }
}

void mean_block(const PoolArgs& a, const Place& o, const float* x, int64_t n, int64_t to) {
  const int64_t channels = a.shape.channels;
  alignas(64) float sum[kBlock] = {};
  over_window(a.shape, o, [&](int64_t at, int32_t) {
    const float* from = x + at * channels;
#pragma omp simd
    for (int64_t c = 0; c < n; ++c) sum[c] += from[c];
  });
  const float scale = 1.0f / divisor_of(a.shape, o);
#pragma omp simd
  for (int64_t c = 0; c < n; ++c) a.y[to + c] = sum[c] * scale;
}

void gather_block(const PoolArgs& a, const Place& i, int64_t from, int64_t n, int64_t to) {
  const PoolShape& s = a.shape;
  alignas(64) float sum[kBlock] = {};
  over_readers(s, i, [&](int64_t place, int32_t t) {
    const int64_t at = from + place * s.channels;
    const float* dy = a.dy + at;
    if (a.kind == PoolKind::average) {
      const float scale = 1.0f / divisor_of(s, place_of(s.out, place));
#pragma omp simd
      for (int64_t c = 0; c < n; ++c) sum[c] += dy[c] * scale;
    } else if (a.has_wide_winner) {
      const auto* winner = static_cast<const int32_t*>(a.winner) + at;
#pragma omp simd
      for (int64_t c = 0; c < n; ++c) sum[c] += winner[c] == t ? dy[c] : 0.0f;
    } else {
      const auto* winner = static_cast<const uint8_t*>(a.winner) + at;
#pragma omp simd
      for (int64_t c = 0; c < n; ++c) sum[c] += int32_t{winner[c]} == t ? dy[c] : 0.0f;
    }
  });
  float* dx = a.dx + to;
  if (a.accumulate) {
#pragma omp simd
    for (int64_t c = 0; c < n; ++c) dx[c] += sum[c];
  } else {
#pragma omp simd
    for (int64_t c = 0; c < n; ++c) dx[c] = sum[c];
  }
}

}  // namespace

void pool_forward_nhwc(const PoolArgs& a, int64_t begin, int64_t end) {
  const PoolShape& s = a.shape;
  const int64_t plane = s.out[0] * s.out[1] * s.out[2], in = s.size[0] * s.size[1] * s.size[2];
  for (int64_t i = begin; i < end; ++i) {
    const int64_t n = i / plane;
    const Place o = place_of(s.out, i % plane);
    const float* x = a.x + n * in * s.channels;
    if (a.kind == PoolKind::stochastic) {
      for (int64_t c = 0; c < s.channels; ++c) {
        const auto element = static_cast<uint64_t>((n * s.channels + c) * plane + i % plane);
        forward_element(a, o, x + c, s.channels, i * s.channels + c, element);
      }
      continue;
    }
    for (int64_t c = 0; c < s.channels; c += kBlock) {
      const int64_t count = lesser(kBlock, s.channels - c);
      a.kind == PoolKind::max ? max_block(a, o, x + c, count, i * s.channels + c)
                              : mean_block(a, o, x + c, count, i * s.channels + c);
    }
  }
}

void pool_forward_nchw(const PoolArgs& a, int64_t begin, int64_t end) {
  const PoolShape& s = a.shape;
  const int64_t plane = s.out[0] * s.out[1] * s.out[2], in = s.size[0] * s.size[1] * s.size[2];
  for (int64_t p = begin; p < end; ++p) {
    for (int64_t i = 0; i < plane; ++i) {
      const int64_t to = p * plane + i;
      forward_element(a, place_of(s.out, i), a.x + p * in, 1, to, static_cast<uint64_t>(to));
    }
  }
}

void pool_backward_nhwc(const PoolArgs& a, int64_t begin, int64_t end) {
  const PoolShape& s = a.shape;
  const int64_t plane = s.out[0] * s.out[1] * s.out[2], in = s.size[0] * s.size[1] * s.size[2];
  for (int64_t i = begin; i < end; ++i) {
    const Place place = place_of(s.size, i % in);
    for (int64_t c = 0; c < s.channels; c += kBlock) {
      gather_block(a, place, i / in * plane * s.channels + c, lesser(kBlock, s.channels - c),
                   i * s.channels + c);
    }
  }
}

void pool_backward_nchw(const PoolArgs& a, int64_t begin, int64_t end) {
  const PoolShape& s = a.shape;
  const int64_t plane = s.out[0] * s.out[1] * s.out[2], in = s.size[0] * s.size[1] * s.size[2];
  for (int64_t p = begin; p < end; ++p) {
    float* dx = a.dx + p * in;
    if (!a.accumulate) {
      for (int64_t i = 0; i < in; ++i) dx[i] = 0;
    }
    for (int64_t i = 0; i < plane; ++i) {
      const Place o = place_of(s.out, i);
      const float dy = a.dy[p * plane + i];
      if (a.kind == PoolKind::average) {
        const float share = dy / divisor_of(s, o);
        over_window(s, o, [&](int64_t at, int32_t) { dx[at] += share; });
      } else {
        const int32_t t = winner_at(a, p * plane + i);
        if (t >= 0 && (a.has_wide_winner || t != 255)) dx[position_of(s, o, t)] += dy;
      }
    }
  }
}

}  // namespace crema::CREMA_ISA
