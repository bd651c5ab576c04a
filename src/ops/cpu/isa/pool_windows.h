// Windows of pooling in three spatial axes (fewer have leading axes of size 1), and one output
// element in either order.
#pragma once

#include "base/philox.h"
#include "ops/cpu/isa/isa.h"
#include "ops/cpu/isa/vector.h"

namespace crema::CREMA_ISA {

constexpr float kLowest = -3.402823466e38f;

inline int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

/// What output o's window covers along an axis: [begin, end) of x; first is where it starts,
/// padding counted.
struct Reach {
  int64_t first, begin, end;
};

inline Reach window_of(const PoolShape& s, int axis, int64_t o) {
  const int64_t first = o * s.stride[axis] - s.pad[axis];
  return {first, greater(first, 0), lesser(first + s.kernel[axis], s.size[axis])};
}

/// Length of the window clipped to the padded picture: Caffe's divisor.
inline int64_t counted(const PoolShape& s, int axis, int64_t o) {
  const int64_t first = o * s.stride[axis] - s.pad[axis];
  return lesser(first + s.kernel[axis], s.size[axis] + s.pad[axis]) - first;
}

struct Place {
  int64_t v[3];
};

inline float divisor_of(const PoolShape& s, const Place& o) {
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

/// The flat position in x's plane of element t of output o's window; -1 where none won.
inline int64_t position_of(const PoolShape& s, const Place& o, int32_t t) {
  if (t < 0) return -1;
  const int64_t w = o.v[2] * s.stride[2] - s.pad[2] + t % s.kernel[2];
  const int64_t h = o.v[1] * s.stride[1] - s.pad[1] + t / s.kernel[2] % s.kernel[1];
  const int64_t d = o.v[0] * s.stride[0] - s.pad[0] + t / s.kernel[2] / s.kernel[1];
  return (d * s.size[1] + h) * s.size[2] + w;
}

// ---- The winning element of a window, kept from forward to backward: a byte where that is enough,
// in y's order but for vectors of channels (packed_winners).

inline void keep_winner(const PoolArgs& a, int64_t at, int32_t t) {
  if (a.has_wide_winner) {
    static_cast<int32_t*>(a.winner)[at] = t;
  } else {
    static_cast<uint8_t*>(a.winner)[at] = static_cast<uint8_t>(t);
  }
}

inline int32_t winner_at(const PoolArgs& a, int64_t at) {
  return a.has_wide_winner ? static_cast<const int32_t*>(a.winner)[at]
                           : static_cast<const uint8_t*>(a.winner)[at];
}

// ---- One output element: nchw, and stochastic pooling in both orders.

struct Sample {
  float value;
  int32_t t;
};

/// Strides of x's plane: 1 in nchw, channels in nhwc.
inline Sample max_of(const PoolShape& s, const Place& o, const float* x, int64_t stride) {
  Sample best{kLowest, -1};
  over_window(s, o, [&](int64_t at, int32_t t) {
    if (x[at * stride] > best.value) best = {x[at * stride], t};
  });
  return best;
}

inline float mean_of(const PoolShape& s, const Place& o, const float* x, int64_t stride) {
  float sum = 0;
  over_window(s, o, [&](int64_t at, int32_t) { sum += x[at * stride]; });
  return sum / divisor_of(s, o);
}

/// Zeiler and Fergus 2013: an element by its share of the sum, or the expectation of that.
inline Sample sample_of(const PoolArgs& a, const Place& o, const float* x, int64_t stride,
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

inline void forward_element(const PoolArgs& a, const Place& o, const float* x, int64_t stride,
                            int64_t to, uint64_t element) {
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

}  // namespace crema::CREMA_ISA
