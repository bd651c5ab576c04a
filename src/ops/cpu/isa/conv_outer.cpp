// The weight gradient of a convolution as a sum of outer products: elements of a pixel's window,
// read where they lie, times the pixel's outputs, which are packed. Sums run over the pixels in
// order, whatever the number of threads.
#include "ops/cpu/isa/conv_pixels.h"
#include "ops/cpu/isa/loops.h"

namespace crema::CREMA_ISA {
namespace {

/// Outputs that are packed at a time.
constexpr int64_t kBlock = kGemmPackedB / kDepth / kCols * kCols;

/// Memory that the next pixels need, fetched while the present ones are multiplied: two stretches,
/// one behind the other.
class Ahead {
 public:
  void want(int place, const float* begin, int64_t count) {
    next_[place] = begin;
    left_[place] = count;
  }
  /// The next `lines` lines of it; instead, where there are none.
  const float* take(int64_t lines, const float* instead) {
    for (int i = 0; i < 2; ++i) {
      if (left_[i] <= 0) continue;
      const float* lines_begin = next_[i];
      next_[i] += lines * kLine;
      left_[i] -= lines * kLine;
      return lines_begin;
    }
    return instead;
  }

 private:
  const float* next_[2] = {};
  int64_t left_[2] = {};
};

/// Operands of add_outer.
struct Outer {
  int64_t depth;
  const float* const* windows;
  const float* strip;  // [depth, kVectors * kWidth]
  const float* ahead;  // depth lines of it are fetched
  float* sums;
  int64_t row_stride;
};

/// sums [kRowCount, kVectors * kWidth] += the elements that lie `offset` behind each window, times
/// strip.
template <int kRowCount, int kVectors>
void add_outer(const Outer& outer, int64_t offset) {
  const float* strip = outer.strip;
  float* sums = outer.sums;
  Vector sum[kRowCount][kVectors];  // every loop over it is unrolled, so that it stays in registers
#pragma GCC unroll 16
  for (int i = 0; i < kRowCount; ++i) {
    for (int j = 0; j < kVectors; ++j) sum[i][j] = Vector{};
  }
  for (int64_t k = 0; k < outer.depth; ++k, strip += kVectors * kWidth) {
    const float* elements = outer.windows[k] + offset;
    __builtin_prefetch(elements + kLine);  // of the next piece
    __builtin_prefetch(outer.ahead + k * kLine, 0, 2);
    Vector outputs[kVectors];
    for (int j = 0; j < kVectors; ++j) outputs[j] = load(strip + j * kWidth);
#pragma GCC unroll 16
    for (int i = 0; i < kRowCount; ++i) {
      for (int j = 0; j < kVectors; ++j) sum[i][j] += elements[i] * outputs[j];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRowCount; ++i, sums += outer.row_stride) {
    for (int j = 0; j < kVectors; ++j) {
      store(sums + j * kWidth, load(sums + j * kWidth) + sum[i][j]);
    }
  }
}

using AddOuter = void (*)(const Outer&, int64_t offset);

template <int kVectors, int... kCounts>
AddOuter add_outer_of(int64_t rows, std::integer_sequence<int, kCounts...>) {
  static constexpr AddOuter kLoops[] = {add_outer<kCounts + 1, kVectors>...};
  return kLoops[rows - 1];
}

/// Packs kVectors vectors of each pixel's outputs. What lies behind the last output is packed too:
/// its sums are never read.
template <int kVectors>
void pack_outputs(const Pixels& pixels, int64_t first, const float* end, float* to,
                  double* bias_sums) {
  Vector total[kVectors] = {};
  for (int64_t k = 0; k < pixels.depth; ++k, to += kVectors * kWidth) {
    const float* from = pixels.dy[k] + first;
    for (int j = 0; j < kVectors; ++j) {
      const int64_t left = end - from - j * kWidth;
      Vector v = {};
      if (left >= kWidth) {
        v = load(from + j * kWidth);
      } else {
        for (int64_t i = 0; i < left; ++i) v[i] = from[j * kWidth + i];
      }
      total[j] += v;
      store(to + j * kWidth, v);
    }
  }
  for (int j = 0; bias_sums && j < kVectors; ++j) {
    for (int i = 0; i < kWidth; ++i) {
      bias_sums[j * kWidth + i] += static_cast<double>(total[j][i]);
    }
  }
}

/// The place of a part in one group's sums.
struct Place {
  float* sums;           // of output 0
  double* bias_sums;     // likewise, or null
  int64_t first_output;  // of the group, counted through all groups
};

Place place_of(const ConvOuterArgs& a, int64_t group) {
  return {a.sums + group * a.elements * a.padded_outputs,
          a.bias_sums ? a.bias_sums + group * a.padded_outputs : nullptr,
          group * (a.out_channels / a.groups)};
}

/// The pixels' share of pieces [begin, end) by the outputs [first, last) of a group.
void add_pieces(const ConvOuterArgs& a, const Pixels& pixels, const Place& place, int64_t begin,
                int64_t end, int64_t first, int64_t last, bool adds_bias, float* strips,
                Ahead& ahead) {
  const float* const dy_end = a.dy + a.batch * a.out_height * a.out_width * a.out_channels;
  const int64_t depth = pixels.depth;
  const float* windows[kDepth];
  const int32_t from = a.pieces[begin].offset;
  const int64_t shift = place.first_output / (a.out_channels / a.groups) * (a.channels / a.groups);
  for (int64_t k = 0; k < depth; ++k) {
    windows[k] = pixels.base[k] + (pixels.window[k] + shift + from);
  }
  for (int64_t j = first; j < last; j += kCols) {
    float* to = strips + (j - first) * depth;
    double* bias = adds_bias ? place.bias_sums + j : nullptr;
    if (last - j > kWidth) {
      pack_outputs<2>(pixels, place.first_output + j, dy_end, to, bias);
    } else {
      pack_outputs<1>(pixels, place.first_output + j, dy_end, to, bias);
    }
  }
  constexpr auto kCounts = std::make_integer_sequence<int, kRows>();
  for (int64_t p = begin; p < end; ++p) {
    const ConvSegment& piece = a.pieces[p];
    const AddOuter wide = add_outer_of<2>(piece.count, kCounts);
    const AddOuter narrow = add_outer_of<1>(piece.count, kCounts);
    for (int64_t j = first; j < last; j += kCols) {
      const float* strip = strips + (j - first) * depth;
      const Outer outer{depth,
                        windows,
                        strip,
                        ahead.take(depth, strip),
                        place.sums + piece.column * a.padded_outputs + j,
                        a.padded_outputs};
      (last - j > kWidth ? wide : narrow)(outer, piece.offset - from);
    }
  }
}

/// What a thread computes.
struct Share {
  int64_t first_piece, last_piece, first_output, last_output;
};

void clear_sums(const ConvOuterArgs& a, const Share& share) {
  const int64_t count = share.last_output - share.first_output;
  for (int64_t group = 0; group < a.groups; ++group) {
    const Place place = place_of(a, group);
    for (int64_t p = share.first_piece; p < share.last_piece; ++p) {
      for (int64_t i = 0; i < a.pieces[p].count; ++i) {
        clear(place.sums + (a.pieces[p].column + i) * a.padded_outputs + share.first_output, count);
      }
    }
    for (int64_t j = 0; a.bias_sums && share.first_piece == 0 && j < count; ++j) {
      place.bias_sums[share.first_output + j] = 0;
    }
  }
}

/// Wants what the chunk behind this one reads first.
void look_ahead(const ConvOuterArgs& a, const Chunk& chunk, Ahead& ahead) {
  const int64_t pixels = a.batch * a.out_height * a.out_width, next = chunk.first + chunk.depth;
  const int64_t count = lesser(kDepth, pixels - next);
  ahead.want(0, a.dy + next * a.out_channels, count * a.out_channels);
  const bool is_same_place = a.height * a.width == a.out_height * a.out_width;
  if (is_same_place) ahead.want(1, a.x + next * a.channels, count * a.channels);
}

}  // namespace

void conv_outer(const ConvOuterArgs& a, const GemmPart& part, float* band) {
  const int64_t all = a.batch * a.out_height * a.out_width;
  const Share share{part.row_begin / kRows, part.row_end / kRows, part.col_begin, part.col_end};
  clear_sums(a, share);
  Chunk chunk;
  Pixels pixels;
  Ahead ahead;
  for (chunk.first = 0; chunk.first < all; chunk.first += kDepth) {
    chunk.depth = lesser(kDepth, all - chunk.first);
    place_windows(a, band, chunk);
    look_ahead(a, chunk, ahead);
    for (const ConvColumns* c = a.groups_begin; c != a.groups_end; ++c) {
      const int64_t begin = c->begin > share.first_piece ? c->begin : share.first_piece;
      const int64_t end = lesser(c->end, share.last_piece);
      if (begin >= end) continue;
      select_pixels(a, chunk, *c, pixels);
      if (pixels.depth == 0) continue;
      const bool adds_bias = a.bias_sums && begin == 0;
      for (int64_t group = 0; group < a.groups; ++group) {
        for (int64_t j = share.first_output; j < share.last_output; j += kBlock) {
          add_pieces(a, pixels, place_of(a, group), begin, end, j,
                     lesser(j + kBlock, share.last_output), adds_bias, part.buffer, ahead);
        }
      }
    }
  }
}

}  // namespace crema::CREMA_ISA
