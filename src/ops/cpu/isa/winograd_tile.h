// Winograd's tiles of 6 x 6. The points are 0, a, -a, b, -b and infinity with a^2 = 1/2 and b^2 =
// 2, which lose less to rounding than 1 and 2 (Alam et al. 2022). Vectors run over channels.
#pragma once

#include "ops/cpu/isa/micro_tile.h"
#include "ops/cpu/isa/winograd.h"

namespace crema::CREMA_ISA {
constexpr int kTile = static_cast<int>(kWinogradTile);
constexpr int kPoints = kTile * kTile;
constexpr float kA = 0.70710678118654752F, kB = 1.4142135623730950F;
constexpr float kA2 = 0.5F, kB2 = 2.0F, kSum2 = kA2 + kB2;  // kA2 * kB2 is 1
constexpr float kA3 = kA * kA2, kB3 = kB * kB2;
/// The finite points, and what weights are multiplied by there.
constexpr float kPoint[5] = {0, kA, -kA, kB, -kB};
constexpr float kScale[5] = {1, -1 / 1.5F, -1 / 1.5F, 1 / 6.0F, 1 / 6.0F};

struct Line {
  Vector v[kTile];
};

/// B^T d: the values at the points of a polynomial's part.
__attribute__((always_inline)) inline Line transformed(const Line& d) {
  const Vector even_a = d.v[4] - kB2 * d.v[2], odd_a = kA * (d.v[3] - kB2 * d.v[1]);
  const Vector even_b = d.v[4] - kA2 * d.v[2], odd_b = kB * (d.v[3] - kA2 * d.v[1]);
  return {{d.v[0] - kSum2 * d.v[2] + d.v[4], even_a + odd_a, even_a - odd_a, even_b + odd_b,
           even_b - odd_b, d.v[1] - kSum2 * d.v[3] + d.v[5]}};
}

__attribute__((always_inline)) inline Vector load_some(const float* from, int64_t n) {
  if (n >= kWidth) return load(from);
  Vector v = {};
  for (int64_t i = 0; i < n; ++i) v[i] = from[i];
  return v;
}

__attribute__((always_inline)) inline void store_some(float* to, Vector v, int64_t n) {
  if (n >= kWidth) return store(to, v);
  for (int64_t i = 0; i < n; ++i) to[i] = v[i];
}

/// Where a tile lies: the picture and the first output's row and column.
struct Place {
  int64_t picture, row, column;
};

inline Place place_of(const WinogradArgs& a, int64_t tile) {
  const int64_t outputs = kTile - a.kernel + 1, column = tile % a.tiles_wide;
  const int64_t line = tile / a.tiles_wide;
  return {line / a.tiles_high, line % a.tiles_high * outputs, column * outputs};
}

/// values[point * step + tile * tile_step + channel - begin] of channels [begin, end) of `count`
/// neighbours in a row of tiles. The columns that they share are transformed once.
template <int kOutputs>
void transform_neighbours(const WinogradArgs& a, const Place& place, int64_t count, int64_t begin,
                          int64_t end, int64_t step, int64_t tile_step, float* values) {
  const int64_t top = place.row - a.pad[0], left = place.column - a.pad[1];
  const float* lines[kTile];
  for (int i = 0; i < kTile; ++i) {
    const int64_t y = top + i;
    const float* line = a.from + (place.picture * a.height + y) * a.width * a.from_step;
    lines[i] = y >= 0 && y < a.height ? line : nullptr;
  }
  for (int64_t c = begin; c < end; c += kWidth) {
    const int64_t n = end - c;
    Line columns[kTile];  // the last ones, column x at place x % kTile
    int64_t x = 0;
    for (int64_t tile = 0; tile < count; ++tile) {
      for (; x < tile * kOutputs + kTile; ++x) {
        Line d = {};
        if (left + x >= 0 && left + x < a.width) {
          const int64_t at = (left + x) * a.from_step + c;
#pragma GCC unroll 6
          for (int i = 0; i < kTile; ++i) {
            if (lines[i]) d.v[i] = load_some(lines[i] + at, n);
          }
        }
        columns[x % kTile] = transformed(d);
      }
      const Line* own[kTile];
#pragma GCC unroll 6
      for (int j = 0; j < kTile; ++j) own[j] = &columns[(tile * kOutputs + j) % kTile];
      float* to = values + tile * tile_step + c - begin;
#pragma GCC unroll 6
      for (int i = 0; i < kTile; ++i) {
        const Line row = transformed(
            {{own[0]->v[i], own[1]->v[i], own[2]->v[i], own[3]->v[i], own[4]->v[i], own[5]->v[i]}});
#pragma GCC unroll 6
        for (int j = 0; j < kTile; ++j) store(to + (i * kTile + j) * step, row.v[j]);
      }
    }
  }
}

/// The same of tiles [first, last), counted through the batch.
inline void transform_tiles(const WinogradArgs& a, int64_t first, int64_t last, int64_t begin,
                            int64_t end, int64_t step, int64_t tile_step, float* values) {
  const auto neighbours = a.kernel == 5 ? transform_neighbours<2> : transform_neighbours<4>;
  for (int64_t tile = first; tile < last;) {
    const int64_t count = lesser(a.tiles_wide - tile % a.tiles_wide, last - tile);
    neighbours(a, place_of(a, tile), count, begin, end, step, tile_step,
               values + (tile - first) * tile_step);
    tile += count;
  }
}

// Of winograd_params.cpp, for the table in winograd.cpp.
void winograd_params(const WinogradParamsArgs& args, const GemmPart& part, float* buffer);
void winograd_unpack(const WinogradUnpackArgs& args, int64_t strip);

}  // namespace crema::CREMA_ISA
