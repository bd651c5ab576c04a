// Pooling in nhwc: blocks of channels of one position. Backward gathers: each element of dx is
// written once.
#include "ops/cpu/isa/loops.h"
#include "ops/cpu/isa/pool_windows.h"

namespace crema::CREMA_ISA {
namespace {

/// Which outputs [begin, end) have input i in their window along an axis; i may only grow from call
/// to call, so that no division is needed.
void follow_readers(const PoolShape& s, int axis, int64_t i, Reach& r) {
  const int64_t at = i + s.pad[axis];
  while (r.begin * s.stride[axis] + s.kernel[axis] <= at) ++r.begin;
  while (r.end < s.out[axis] && r.end * s.stride[axis] <= at) ++r.end;
}

/// An input and the outputs along each axis that read it.
struct Input {
  Place at;
  Reach readers[3];
};

/// Calls visit(output place, the same counted in the plane, element of its window) over all windows
/// that hold an input.
template <class Visit>
__attribute__((always_inline)) inline void over_readers(const PoolShape& s, const Input& i,
                                                        const Visit& visit) {
  const Reach &d = i.readers[0], &h = i.readers[1], &w = i.readers[2];
  for (int64_t od = d.begin; od < d.end; ++od) {
    const int64_t td = i.at.v[0] - od * s.stride[0] + s.pad[0];
    for (int64_t oh = h.begin; oh < h.end; ++oh) {
      const int64_t th = td * s.kernel[1] + i.at.v[1] - oh * s.stride[1] + s.pad[1];
      for (int64_t ow = w.begin; ow < w.end; ++ow) {
        const int64_t tw = i.at.v[2] - ow * s.stride[2] + s.pad[2];
        visit(Place{{od, oh, ow}}, (od * s.out[1] + oh) * s.out[2] + ow,
              static_cast<int32_t>(th * s.kernel[2] + tw));
      }
    }
  }
}

#if defined(__AVX512F__)
constexpr int kWidth = 16;
#elif defined(__AVX2__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif
typedef float Floats __attribute__((vector_size(kWidth * 4)));
typedef int32_t Ints __attribute__((vector_size(kWidth * 4)));

template <class V>
__attribute__((always_inline)) inline V load(const void* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}
template <class V>
__attribute__((always_inline)) inline void store(void* to, V v) {
  __builtin_memcpy(to, &v, sizeof(v));
}

/// Some vectors of channels from channel `first` on. The last one may begin earlier than its turn,
/// so that it ends with the channels: its first `skip` lanes were the one before's.
struct Channels {
  int64_t first, last, skip;
  template <int kBlocks>
  int64_t offset(int block) const {
    return block == kBlocks - 1 ? last : block * kWidth;
  }
};

/// Calls blocks.operator()<number of vectors>(Channels) until all channels had their turn, or
/// single(channel) where they do not fill a vector.
template <class Blocks, class Single>
__attribute__((always_inline)) inline void over_channels(int64_t channels, const Blocks& blocks,
                                                         const Single& single) {
  for (int64_t c = 0; channels < kWidth && c < channels; ++c) single(c);
  for (int64_t c = 0; channels >= kWidth && c < channels; c += 4 * kWidth) {
    const int64_t left = channels - c, count = lesser((left + kWidth - 1) / kWidth, 4);
    const int64_t usual = (count - 1) * kWidth, last = lesser(left - kWidth, usual);
    const Channels part{c, last, usual - last};
    if (count == 4) {
      blocks.template operator()<4>(part);
    } else if (count == 3) {
      blocks.template operator()<3>(part);
    } else if (count == 2) {
      blocks.template operator()<2>(part);
    } else {
      blocks.template operator()<1>(part);
    }
  }
}

/// Where the winners of `part` lie: all of them in one vector, a byte of each element per block.
void* packed_winners(const PoolArgs& a, int64_t position, const Channels& part) {
  return static_cast<uint8_t*>(a.winner) + position * a.winner_stride + part.first;
}

template <int kBlocks>
void keep_winners(const PoolArgs& a, int64_t position, const Channels& c,
                  const Ints (&winner)[kBlocks]) {
  if (a.has_wide_winner) {
    int32_t* to = static_cast<int32_t*>(a.winner) + position * a.shape.channels + c.first;
    for (int b = 0; b < kBlocks; ++b) store(to + c.offset<kBlocks>(b), winner[b]);
    return;
  }
  Ints bytes = winner[0] & 255;
  for (int b = 1; b < kBlocks; ++b) bytes |= (winner[b] & 255) << 8 * b;
  store(packed_winners(a, position, c), bytes);
}

/// An output position: its place in the plane and its number in the batch; x is its picture.
struct Output {
  Place at;
  int64_t position;
  const float* x;
};

template <int kBlocks>
void max_block(const PoolArgs& a, const Output& o, const Channels& c) {
  Floats best[kBlocks];
  Ints winner[kBlocks];
  for (int b = 0; b < kBlocks; ++b) {
    best[b] = Floats{} + kLowest;
    winner[b] = Ints{} - 1;
  }
  over_window(a.shape, o.at, [&](int64_t at, int32_t t) {
    const float* from = o.x + at * a.shape.channels + c.first;
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      const Floats v = load<Floats>(from + c.offset<kBlocks>(b));
      const Ints wins = v > best[b];
      best[b] = wins ? v : best[b];
      winner[b] = wins ? Ints{} + t : winner[b];
    }
  });
  for (int b = 0; b < kBlocks; ++b) {
    const int64_t at = o.position * a.shape.channels + c.first + c.offset<kBlocks>(b);
    store(a.y + at, best[b]);
    for (int i = 0; a.mask && i < kWidth; ++i) {
      a.mask[at + i] = static_cast<float>(position_of(a.shape, o.at, winner[b][i]));
    }
  }
  if (a.winner) keep_winners<kBlocks>(a, o.position, c, winner);
}

template <int kBlocks>
void mean_block(const PoolArgs& a, const Output& o, const Channels& c) {
  Floats sum[kBlocks];
  for (int b = 0; b < kBlocks; ++b) sum[b] = Floats{};
  over_window(a.shape, o.at, [&](int64_t at, int32_t) {
    const float* from = o.x + at * a.shape.channels + c.first;
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) sum[b] += load<Floats>(from + c.offset<kBlocks>(b));
  });
  const float scale = 1.0f / divisor_of(a.shape, o.at);
  float* y = a.y + o.position * a.shape.channels + c.first;
  for (int b = 0; b < kBlocks; ++b) store(y + c.offset<kBlocks>(b), sum[b] * scale);
}

template <int kBlocks>
__attribute__((always_inline)) inline void store_gradient(const PoolArgs& a, int64_t to,
                                                          const Channels& c,
                                                          const Floats (&sum)[kBlocks]) {
  for (int b = 0; b < kBlocks; ++b) {
    float* dx = a.dx + to + c.first + c.offset<kBlocks>(b);
    if (!a.accumulate) {
      store(dx, sum[b]);
    } else if (b < kBlocks - 1 || c.skip == 0) {
      store(dx, load<Floats>(dx) + sum[b]);
    } else {
      for (int64_t i = c.skip; i < kWidth; ++i) dx[i] += sum[b][i];
    }
  }
}

/// first: the number of the first output of the input's picture; to: the input's first element.
template <int kBlocks>
void share_block(const PoolArgs& a, const Input& i, int64_t first, int64_t to, const Channels& c) {
  Floats sum[kBlocks];
  for (int b = 0; b < kBlocks; ++b) sum[b] = Floats{};
  over_readers(a.shape, i, [&](const Place& o, int64_t place, int32_t) {
    const float scale = 1.0f / divisor_of(a.shape, o);
    const float* dy = a.dy + (first + place) * a.shape.channels + c.first;
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) sum[b] += load<Floats>(dy + c.offset<kBlocks>(b)) * scale;
  });
  store_gradient<kBlocks>(a, to, c, sum);
}

/// The same for what is given to winners.
template <int kBlocks, bool kIsWide>
void gather_block(const PoolArgs& a, const Input& i, int64_t first, int64_t to, const Channels& c) {
  Floats sum[kBlocks];
  for (int b = 0; b < kBlocks; ++b) sum[b] = Floats{};
  over_readers(a.shape, i, [&](const Place&, int64_t place, int32_t t) {
    const int64_t at = (first + place) * a.shape.channels + c.first;
    const float* dy = a.dy + at;
    const auto* wide = static_cast<const int32_t*>(a.winner) + at;
    const Ints bytes = kIsWide ? Ints{} : load<Ints>(packed_winners(a, first + place, c));
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      const int64_t offset = c.offset<kBlocks>(b);
      const Ints won = kIsWide ? load<Ints>(wide + offset) : bytes >> 8 * b & 255;
      sum[b] += won == t ? load<Floats>(dy + offset) : Floats{};
    }
  });
  store_gradient<kBlocks>(a, to, c, sum);
}

/// One channel of an input.
void gather_channel(const PoolArgs& a, const Input& i, int64_t first, int64_t to, int64_t c) {
  float sum = 0;
  over_readers(a.shape, i, [&](const Place& o, int64_t place, int32_t t) {
    const int64_t at = (first + place) * a.shape.channels + c;
    if (a.kind == PoolKind::average) {
      sum += a.dy[at] / divisor_of(a.shape, o);
    } else if (winner_at(a, at) == t) {
      sum += a.dy[at];
    }
  });
  a.dx[to + c] = a.accumulate ? a.dx[to + c] + sum : sum;
}

/// All channels of one output position of picture n.
void forward_position(const PoolArgs& a, const Output& o, int64_t n) {
  const PoolShape& s = a.shape;
  const int64_t channels = s.channels, plane = s.out[0] * s.out[1] * s.out[2];
  const auto single = [&](int64_t c) {
    const int64_t element = (n * channels + c) * plane + o.position - n * plane;
    forward_element(a, o.at, o.x + c, channels, o.position * channels + c,
                    static_cast<uint64_t>(element));
  };
  if (a.kind == PoolKind::max) {
    const auto blocks = [&]<int kBlocks>(const Channels& c) { max_block<kBlocks>(a, o, c); };
    return over_channels(channels, blocks, single);
  }
  if (a.kind == PoolKind::average) {
    const auto blocks = [&]<int kBlocks>(const Channels& c) { mean_block<kBlocks>(a, o, c); };
    return over_channels(channels, blocks, single);
  }
  for (int64_t c = 0; c < channels; ++c) single(c);
}

/// All channels of one input position; first and to as for share_block.
void backward_position(const PoolArgs& a, const Input& i, int64_t first, int64_t to) {
  const auto single = [&](int64_t c) { gather_channel(a, i, first, to, c); };
  if (a.kind == PoolKind::stochastic) {
    for (int64_t c = 0; c < a.shape.channels; ++c) single(c);
    return;
  }
  const auto blocks = [&]<int kBlocks>(const Channels& c) {
    if (a.kind == PoolKind::average) return share_block<kBlocks>(a, i, first, to, c);
    a.has_wide_winner ? gather_block<kBlocks, true>(a, i, first, to, c)
                      : gather_block<kBlocks, false>(a, i, first, to, c);
  };
  over_channels(a.shape.channels, blocks, single);
}

}  // namespace

void pool_forward_nhwc(const PoolArgs& a, int64_t begin, int64_t end) {
  const PoolShape& s = a.shape;
  const int64_t in = s.size[0] * s.size[1] * s.size[2] * s.channels;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t n = row / (s.out[0] * s.out[1]);
    Output o{{{row / s.out[1] % s.out[0], row % s.out[1], 0}}, row * s.out[2], a.x + n * in};
    for (; o.at.v[2] < s.out[2]; ++o.at.v[2], ++o.position) forward_position(a, o, n);
  }
}

void pool_backward_nhwc(const PoolArgs& a, int64_t begin, int64_t end) {
  const PoolShape& s = a.shape;
  const int64_t plane = s.out[0] * s.out[1] * s.out[2];
  for (int64_t row = begin; row < end; ++row) {
    const int64_t first = row / (s.size[0] * s.size[1]) * plane;
    Input i{{{row / s.size[1] % s.size[0], row % s.size[1], 0}}, {}};
    follow_readers(s, 0, i.at.v[0], i.readers[0]);
    follow_readers(s, 1, i.at.v[1], i.readers[1]);
    for (int64_t to = row * s.size[2] * s.channels; i.at.v[2] < s.size[2]; ++i.at.v[2]) {
      follow_readers(s, 2, i.at.v[2], i.readers[2]);
      backward_position(a, i, first, to);
      to += s.channels;
    }
  }
}

}  // namespace crema::CREMA_ISA
