// Pooling in nhwc, backward: gathers, a row of dx at a time, so that each of its elements is
// written once.
#include "ops/cpu/isa/loops.h"
#include "ops/cpu/isa/pool_channels.h"

namespace crema::CREMA_ISA {
namespace {

/// Which outputs [begin, end) have input i in their window along an axis; i may only grow from call
/// to call, so that no division is needed.
__attribute__((always_inline)) inline void follow_readers(const PoolShape& s, int axis, int64_t i,
                                                          Reach& r) {
  const int64_t at = i + s.pad[axis];
  while (r.begin * s.stride[axis] + s.kernel[axis] <= at) ++r.begin;
  while (r.end < s.out[axis] && r.end * s.stride[axis] <= at) ++r.end;
}

/// A row of dx and the planes and rows of outputs that read it.
struct Row {
  int64_t id, ih;
  Reach d, h;
  int64_t first;  // number of the first output of its picture
  int64_t to;     // its first element in dx
};

/// Calls visit(first output of the row, element of its window where the window begins with the
/// input, place) for all rows of outputs that read a row of dx.
template <class Visit>
__attribute__((always_inline)) inline void over_rows(const PoolShape& s, const Row& row,
                                                     const Visit& visit) {
  for (int64_t od = row.d.begin; od < row.d.end; ++od) {
    const int64_t td = row.id - od * s.stride[0] + s.pad[0];
    for (int64_t oh = row.h.begin; oh < row.h.end; ++oh) {
      const int64_t th = td * s.kernel[1] + row.ih - oh * s.stride[1] + s.pad[1];
      visit(row.first + (od * s.out[1] + oh) * s.out[2], th * s.kernel[2], Place{{od, oh, 0}});
    }
  }
}

/// What an input gets of an output that reads it: its share of the mean, or all where it won, which
/// a byte or an int32 says.
enum class Gives { share, byte, wide };

/// A row of outputs that reads a row of dx, all of its channels. t: see over_rows, in each byte
/// where winners are bytes.
struct Reader {
  const float* dy;
  const uint8_t* winner;
  int32_t t;
  int32_t lines;  // height and depth of its windows as the divisor counts them
  float share;    // 1 / divisor of those that are not clipped at the right
};
constexpr int64_t kPiece = 8192;  // elements of dx

/// All of a row of dx, which begins there. below: the row behind the last one, which the next rows
/// of dx need: rows are read in turns, which the processor does not foresee.
struct Readers {
  float* dx = nullptr;
  int64_t count = 0;
  Reader below{};
  Reader of[kMostPoolRows];
};

/// Outputs of one row that read a pixel, from the first one's first channel on; last: see Channels.
struct Neighbours {
  const float* dy;
  const uint8_t* winner;
  int64_t count, last;
};

/// A walk along the pixels of a row: which outputs [begin, end) of a row read pixel i.
struct Walk {
  int64_t i, begin, end;
  int64_t drop, take;  // the pixels at which begin and end grow next
};

__attribute__((always_inline)) inline void grow(const PoolShape& s, Walk& w) {
  if (w.i == w.drop) {
    ++w.begin;
    w.drop += s.stride[2];
  }
  if (w.i == w.take && w.end < s.out[2]) {
    ++w.end;
    w.take += s.stride[2];
  }
}

Walk walk_of(const PoolShape& s) {
  Reach w{};
  follow_readers(s, 2, 0, w);
  return {0, w.begin, w.end, w.begin * s.stride[2] + s.kernel[2] - s.pad[2],
          w.end * s.stride[2] - s.pad[2]};
}

template <Gives kGives>
constexpr int32_t kEach = kGives == Gives::byte ? 0x01010101 : 1;

Readers readers_of(const PoolArgs& a, const Row& row) {
  const PoolShape& s = a.shape;
  const bool is_byte = a.kind == PoolKind::max && !a.has_wide_winner;
  const int64_t bytes = is_byte ? a.winner_stride : s.channels * int64_t{sizeof(int32_t)};
  const auto* winner = static_cast<const uint8_t*>(a.winner);
  Readers readers;
  readers.dx = a.dx + row.to;
  const auto reader = [&](int64_t output, int64_t t, int64_t lines) {
    return Reader{.dy = a.dy + output * s.channels,
                  .winner = winner ? winner + output * bytes : nullptr,
                  .t = static_cast<int32_t>(t) * (is_byte ? kEach<Gives::byte> : 1),
                  .lines = static_cast<int32_t>(lines),
                  .share = 1.0f / static_cast<float>(lines * s.kernel[2])};
  };
  int64_t below = row.first;
  over_rows(s, row, [&](int64_t output, int64_t t, const Place& o) {
    const int64_t lines = counted(s, 0, o.v[0]) * counted(s, 1, o.v[1]);
    readers.of[readers.count++] = reader(output, t, lines);
    below = output + s.out[2];
  });
  readers.below = reader(below, 0, 1);
  return readers;
}

template <int kBlocks>
__attribute__((always_inline)) inline void store_gradient(bool accumulate, float* dx,
                                                          const Channels& c,
                                                          const Vector (&sum)[kBlocks]) {
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    float* to = dx + c.offset<kBlocks>(b);
    if (!accumulate) {
      store(to, sum[b]);
    } else if (b < kBlocks - 1 || c.skip == 0) {
      store(to, load(to) + sum[b]);
    } else {
      alignas(64) float rest[kWidth];
      store(rest, sum[b]);
      for (int64_t i = c.skip; i < kWidth; ++i) to[i] += rest[i];
    }
  }
}

/// Adds what neighbours give to the pixel that is element `wanted` of the first one's window.
template <int kBlocks, Gives kGives>
__attribute__((always_inline)) inline void add_won(const PoolArgs& a, Neighbours n,
                                                   IntVector wanted, Vector (&sum)[kBlocks]) {
  constexpr bool kIsWide = kGives == Gives::wide;
  const int64_t channels = a.shape.channels, bytes = kIsWide ? channels * 4 : a.winner_stride;
  const IntVector step = IntVector{} + static_cast<int32_t>(a.shape.stride[2]) * kEach<kGives>;
  for (; n.count > 0; --n.count, wanted -= step, n.dy += channels, n.winner += bytes) {
    // A byte of it is 0 where t won.
    IntVector others{};
    if constexpr (!kIsWide) others = load<IntVector>(n.winner) ^ wanted;
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      const int64_t offset = b == kBlocks - 1 ? n.last : b * kWidth;
      IntVector lost;
      if constexpr (kIsWide) {
        lost = load<IntVector>(n.winner + offset * 4) ^ wanted;
      } else {
        lost = others & static_cast<int32_t>(255u << 8 * b);
      }
      sum[b] += lost == 0 ? load(n.dy + offset) : Vector{};
    }
  }
}

/// The same for means, of outputs from number `first` of row r on. Divisions only where a window is
/// clipped.
template <int kBlocks>
__attribute__((always_inline)) inline void add_shares(const PoolShape& s, const Reader& r,
                                                      int64_t first, Neighbours n,
                                                      Vector (&sum)[kBlocks]) {
  for (int64_t o = first; o < first + n.count; ++o, n.dy += s.channels) {
    const int64_t columns = counted(s, 2, o);
    const float share =
        columns == s.kernel[2] ? r.share : 1.0f / static_cast<float>(r.lines * columns);
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      sum[b] += load(n.dy + (b == kBlocks - 1 ? n.last : b * kWidth)) * share;
    }
  }
}

/// Some channels c of pixels [w.i, end) of a row of dx.
template <int kBlocks, Gives kGives>
__attribute__((noinline)) Walk gather(const PoolArgs& a, const Readers& readers, Walk w,
                                      int64_t end, const Channels& c) {
  const PoolShape& s = a.shape;
  const int64_t channels = s.channels;
  const int64_t bytes = kGives == Gives::wide ? channels * 4 : a.winner_stride;
  const int64_t first_byte = c.first * (kGives == Gives::wide ? 4 : 1);
  const Reader* const readers_end = readers.of + readers.count;
  const int64_t ahead = greater(kStoreAhead, 8 * channels);
  float* dx = readers.dx + w.i * channels + c.first;
  for (; w.i < end; ++w.i, dx += channels) {
    grow(s, w);
    const int64_t from = w.begin * channels + c.first, winner = w.begin * bytes + first_byte;
    Vector sum[kBlocks];
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      sum[b] = Vector{};
      __builtin_prefetch(dx + b * kWidth + ahead, 1);
      __builtin_prefetch(readers.below.dy + from + b * kWidth);
    }
    if constexpr (kGives != Gives::share) __builtin_prefetch(readers.below.winner + winner);
    const int64_t tw = w.i + s.pad[2] - w.begin * s.stride[2];
    const IntVector t = IntVector{} + static_cast<int32_t>(tw) * kEach<kGives>;
    Neighbours n{nullptr, nullptr, w.end - w.begin, c.last};
    for (const Reader* r = readers.of; r < readers_end; ++r) {
      n.dy = r->dy + from;
      if constexpr (kGives == Gives::share) {
        add_shares<kBlocks>(s, *r, w.begin, n, sum);
      } else {
        n.winner = r->winner + winner;
        add_won<kBlocks, kGives>(a, n, t + r->t, sum);
      }
    }
    store_gradient<kBlocks>(a.accumulate, dx, c, sum);
  }
  return w;
}

/// One channel of a row.
void gather_channel(const PoolArgs& a, const Row& row, int64_t c) {
  const PoolShape& s = a.shape;
  Reach w{};
  for (int64_t i = 0; i < s.size[2]; ++i) {
    follow_readers(s, 2, i, w);
    float sum = 0;
    over_rows(s, row, [&](int64_t output, int64_t t, Place place) {
      for (int64_t o = w.begin; o < w.end; ++o) {
        const int64_t at = (output + o) * s.channels + c;
        place.v[2] = o;
        if (a.kind == PoolKind::average) {
          sum += a.dy[at] / divisor_of(s, place);
        } else if (winner_at(a, at) == t + i + s.pad[2] - o * s.stride[2]) {
          sum += a.dy[at];
        }
      }
    });
    float& dx = a.dx[row.to + i * s.channels + c];
    dx = a.accumulate ? dx + sum : sum;
  }
}

void backward_row(const PoolArgs& a, const Row& row) {
  const PoolShape& s = a.shape;
  const int64_t count = (row.d.end - row.d.begin) * (row.h.end - row.h.begin);
  if (a.kind == PoolKind::stochastic || count > kMostPoolRows || s.channels < kWidth) {
    for (int64_t c = 0; c < s.channels; ++c) gather_channel(a, row, c);
    return;
  }
  const Readers readers = readers_of(a, row);
  // Of more channels than one call takes some pixels in turns, so that lines lie side by side.
  const int64_t piece = s.channels <= 4 * kWidth ? s.size[2] : greater(kPiece / s.channels, 1);
  Walk walk = walk_of(s);
  while (walk.i < s.size[2]) {
    const int64_t end = lesser(walk.i + piece, s.size[2]);
    Walk next = walk;
    const auto blocks = [&]<int kBlocks>(const Channels& c) {
      if (a.kind == PoolKind::average) {
        next = gather<kBlocks, Gives::share>(a, readers, walk, end, c);
      } else if (a.has_wide_winner) {
        next = gather<kBlocks, Gives::wide>(a, readers, walk, end, c);
      } else {
        next = gather<kBlocks, Gives::byte>(a, readers, walk, end, c);
      }
    };
    over_channels(s.channels, blocks, [](int64_t) {});
    walk = next;
  }
}

}  // namespace

void pool_backward_nhwc(const PoolArgs& a, int64_t begin, int64_t end) {
  const PoolShape& s = a.shape;
  const int64_t plane = s.out[0] * s.out[1] * s.out[2];
  for (int64_t i = begin; i < end; ++i) {
    Row row{.id = i / s.size[1] % s.size[0],
            .ih = i % s.size[1],
            .d = {},
            .h = {},
            .first = i / (s.size[0] * s.size[1]) * plane,
            .to = i * s.size[2] * s.channels};
    follow_readers(s, 0, row.id, row.d);
    follow_readers(s, 1, row.ih, row.h);
    backward_row(a, row);
  }
}

}  // namespace crema::CREMA_ISA
