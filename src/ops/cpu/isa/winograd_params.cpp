// The weight gradient by Winograd's tiles, the forward pass turned round: pixels and dy to points,
// for each point a matrix product over the tiles, and the sums to taps at the end.
#include "ops/cpu/isa/winograd_tile.h"

namespace crema::CREMA_ISA {
namespace {

/// A y: kOutputs neighbours of dy at the points.
template <int kOutputs>
__attribute__((always_inline)) inline Line at_points(const Vector (&y)[4]) {
  if constexpr (kOutputs == 2) {
    const Vector a = kA * y[1], b = kB * y[1];
    return {{y[0], y[0] + a, y[0] - a, y[0] + b, y[0] - b, y[1]}};
  } else {
    const Vector even_a = y[0] + kA2 * y[2], odd_a = kA * y[1] + kA3 * y[3];
    const Vector even_b = y[0] + kB2 * y[2], odd_b = kB * y[1] + kB3 * y[3];
    return {{y[0], even_a + odd_a, even_a - odd_a, even_b + odd_b, even_b - odd_b, y[3]}};
  }
}

/// Outputs [begin, end) of one tile of dy; strips[point * step + strip * strip_step + column].
template <int kOutputs>
void transform_gradient(const WinogradArgs& a, const float* dy, const Place& place, int64_t begin,
                        int64_t end, int64_t step, int64_t strip_step, float* strips) {
  const int64_t high = lesser(kOutputs, a.out_height - place.row);
  const int64_t wide = lesser(kOutputs, a.out_width - place.column);
  const float* corner =
      dy + ((place.picture * a.out_height + place.row) * a.out_width + place.column) * a.to_step;
  const int64_t padded = (end - begin + kCols - 1) / kCols * kCols;
  for (int64_t k = 0; k < padded; k += kWidth) {
    const int64_t n = end - begin - k;
    Line rows[4];
    for (int64_t i = 0; i < kOutputs; ++i) {
      Vector y[4] = {};
      for (int64_t j = 0; j < wide && i < high && n > 0; ++j) {
        y[j] = load_some(corner + (i * a.out_width + j) * a.to_step + begin + k, n);
      }
      rows[i] = at_points<kOutputs>(y);
    }
    float* to = strips + k / kCols * strip_step + k % kCols;
    for (int j = 0; j < kTile; ++j) {
      Vector y[4] = {};
      for (int i = 0; i < kOutputs; ++i) y[i] = rows[i].v[j];
      const Line column = at_points<kOutputs>(y);
#pragma GCC unroll 6
      for (int i = 0; i < kTile; ++i) store(to + (i * kTile + j) * step, column.v[i]);
    }
  }
}

/// sums [channels, outputs] of a part = or += values^T [channels, tiles] * strips, at one point.
void multiply(const WinogradArgs& a, const GemmPart& part, int64_t tiles, const float* values,
              int64_t value_step, const float* strips, bool adds, float* sums) {
  for (int64_t k = part.col_begin; k < part.col_end; k += kCols, strips += a.block * kCols) {
    for (int64_t c = part.row_begin; c < part.row_end; c += kRows) {
      const Target target{sums + c * a.padded_outputs + k,
                          a.padded_outputs,
                          1,
                          kCols,
                          adds,
                          nullptr,
                          nullptr,
                          ActKind::none,
                          0};
      tile_of<false>(lesser(kRows, part.row_end - c))(tiles, values + c - part.row_begin, 1,
                                                      value_step, strips, target);
    }
  }
}

/// G^T u along one axis: kernel taps from the points, which lie `step` apart.
__attribute__((always_inline)) inline void taps_of(const Vector* u, int64_t step, int64_t kernel,
                                                   Vector (&out)[5]) {
  float power[5] = {1, 1, 1, 1, 1};
  for (int64_t t = 0; t < kernel; ++t) {
    Vector sum = t == kernel - 1 ? u[5 * step] : Vector{};
    for (int p = 0; p < 5; ++p) {
      sum += u[p * step] * (kScale[p] * power[p]);
      power[p] *= kPoint[p];
    }
    out[t] = sum;
  }
}

}  // namespace

void winograd_params(const WinogradParamsArgs& args, const GemmPart& part, float* buffer) {
  const WinogradArgs& a = args.tiles;
  const int64_t all = a.batch * a.tiles_high * a.tiles_wide;
  const int64_t width = (part.row_end - part.row_begin + kWidth - 1) / kWidth * kWidth;
  const int64_t value_step = a.block * width, strip_step = a.block * kCols;
  const int64_t gradient_step = (part.col_end - part.col_begin) / kCols * strip_step;
  const int64_t last = lesser(part.col_end, a.out_channels);
  float *values = buffer, *strips = buffer + kPoints * value_step;
  for (int64_t first = 0; first < all; first += a.block) {
    const int64_t tiles = lesser(a.block, all - first);
    transform_tiles(a, first, first + tiles, part.row_begin, part.row_end, value_step, width,
                    values);
    for (int64_t i = 0; i < tiles; ++i) {
      const Place place = place_of(a, first + i);
      float* to = strips + i * kCols;
      if (a.kernel == 5) {
        transform_gradient<2>(a, args.dy, place, part.col_begin, last, gradient_step, strip_step,
                              to);
      } else {
        transform_gradient<4>(a, args.dy, place, part.col_begin, last, gradient_step, strip_step,
                              to);
      }
    }
    for (int p = 0; p < kPoints; ++p) {
      multiply(a, part, tiles, values + p * value_step, width, strips + p * gradient_step,
               first > 0, args.sums + p * a.channels * a.padded_outputs);
    }
  }
}

void winograd_unpack(const WinogradUnpackArgs& a, int64_t strip) {
  const int64_t first = strip * kCols, padded = (a.outputs + kCols - 1) / kCols * kCols;
  for (int64_t c = 0; c < a.channels; ++c) {
    for (int64_t k = first; k < first + kCols; k += kWidth) {
      Vector rows[kTile][5];  // at the vertical points, taps along the width
      for (int i = 0; i < kTile; ++i) {
        Vector u[kTile];
        for (int j = 0; j < kTile; ++j) {
          u[j] = load(a.sums + ((i * kTile + j) * a.channels + c) * padded + k);
        }
        taps_of(u, 1, a.kernel, rows[i]);
      }
      for (int64_t w = 0; w < a.kernel; ++w) {
        Vector taps[5];
        taps_of(&rows[0][w], 5, a.kernel, taps);
        for (int64_t h = 0; h < a.kernel; ++h) {
          float* to = a.dw + c * a.channel_step + h * a.kernel + w;
          for (int64_t i = 0; i < lesser(kWidth, a.outputs - k); ++i) {
            float& one = to[(k + i) * a.output_step];
            one = a.adds ? one + taps[h][i] : taps[h][i];
          }
        }
      }
    }
  }
}

}  // namespace crema::CREMA_ISA
