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

/// values[point * step + channel - begin] of channels [begin, end) of one tile.
inline void transform_tile(const WinogradArgs& a, const Place& place, int64_t begin, int64_t end,
                           int64_t step, float* values) {
  const int64_t top = place.row - a.pad[0], left = place.column - a.pad[1];
  const float* picture = a.from + place.picture * a.height * a.width * a.from_step;
  const float* pixels[kTile][kTile];
  for (int i = 0; i < kTile; ++i) {
    const int64_t y = top + i;
    for (int j = 0; j < kTile; ++j) {
      const int64_t x = left + j;
      const bool is_inside = y >= 0 && y < a.height && x >= 0 && x < a.width;
      pixels[i][j] = is_inside ? picture + (y * a.width + x) * a.from_step : nullptr;
    }
  }
  for (int64_t c = begin; c < end; c += kWidth) {
    const int64_t n = end - c;
    Line columns[kTile];
    for (int j = 0; j < kTile; ++j) {
      Line d;
#pragma GCC unroll 6
      for (int i = 0; i < kTile; ++i) {
        d.v[i] = pixels[i][j] ? load_some(pixels[i][j] + c, n) : Vector{};
      }
      columns[j] = transformed(d);
    }
#pragma GCC unroll 6
    for (int i = 0; i < kTile; ++i) {
      const Line row = transformed({{columns[0].v[i], columns[1].v[i], columns[2].v[i],
                                     columns[3].v[i], columns[4].v[i], columns[5].v[i]}});
#pragma GCC unroll 6
      for (int j = 0; j < kTile; ++j) {
        store(values + (i * kTile + j) * step + c - begin, row.v[j]);
      }
    }
  }
}

// Of winograd_params.cpp, for the table in winograd.cpp.
void winograd_params(const WinogradParamsArgs& args, const GemmPart& part, float* buffer);
void winograd_unpack(const WinogradUnpackArgs& args, int64_t strip);

}  // namespace crema::CREMA_ISA
