// A convolution by Winograd's tiles, block by block: pixels to points, a matrix product for each
// point, sums to outputs.
#include "ops/cpu/isa/winograd_tile.h"

namespace crema::CREMA_ISA {
namespace {

/// A^T m: kOutputs neighbouring sums.
template <int kOutputs>
__attribute__((always_inline)) inline void outputs_of(const Line& m, Vector (&y)[4]) {
  const Vector plus_a = m.v[1] + m.v[2], minus_a = m.v[1] - m.v[2];
  const Vector plus_b = m.v[3] + m.v[4], minus_b = m.v[3] - m.v[4];
  y[0] = m.v[0] + plus_a + plus_b;
  if constexpr (kOutputs == 2) {
    y[1] = kA * minus_a + kB * minus_b + m.v[5];
  } else {
    y[1] = kA * minus_a + kB * minus_b;
    y[2] = kA2 * plus_a + kB2 * plus_b;
    y[3] = kA3 * minus_a + kB3 * minus_b + m.v[5];
  }
}

Vector activated_vector(Vector v, ActKind act, float slope) {
  if (act == ActKind::relu) {
    return v < 0 ? (slope == 0 ? Vector{} : slope * v) : v;
  }
  for (int i = 0; i < kWidth; ++i) v[i] = activated(v[i], act, slope);
  return v;
}

/// One output's vector of channels from c on.
__attribute__((always_inline)) inline void put(const WinogradArgs& a, int64_t pixel, int64_t c,
                                               Vector v) {
  const int64_t n = a.out_channels - c, at = pixel * a.to_step + c;
  if (a.bias) v += load_some(a.bias + c, n);
  if (a.residual) v += load_some(a.residual + at, n);
  if (a.act != ActKind::none) v = activated_vector(v, a.act, a.slope);
  if (a.adds) v += load_some(a.to + at, n);
  store_some(a.to + at, v, n);
}

constexpr int64_t kAhead = 2 * kWidth;

/// From sums[point * step + channel] of one tile to its outputs.
template <int kOutputs>
void finish_tile(const WinogradArgs& a, const Place& place, int64_t step, const float* sums) {
  const int64_t high = lesser(kOutputs, a.out_height - place.row);
  const int64_t wide = lesser(kOutputs, a.out_width - place.column);
  const int64_t corner = (place.picture * a.out_height + place.row) * a.out_width + place.column;
  for (int64_t c = 0; c < a.out_channels; c += kWidth) {
    for (int64_t i = 0; i < high; ++i) {
      float* line = a.to + (corner + i * a.out_width) * a.to_step + c + kAhead;
      for (int64_t j = 0; j < wide; ++j) __builtin_prefetch(line + j * a.to_step, 1);
    }
    Vector columns[kTile][4];
    for (int j = 0; j < kTile; ++j) {
      Line m;
#pragma GCC unroll 6
      for (int i = 0; i < kTile; ++i) m.v[i] = load(sums + (i * kTile + j) * step + c);
      outputs_of<kOutputs>(m, columns[j]);
    }
    for (int64_t i = 0; i < high; ++i) {
      Vector y[4];
      outputs_of<kOutputs>({{columns[0][i], columns[1][i], columns[2][i], columns[3][i],
                             columns[4][i], columns[5][i]}},
                           y);
      for (int64_t j = 0; j < wide; ++j) put(a, corner + i * a.out_width + j, c, y[j]);
    }
  }
}

/// sums [tiles, padded_outputs] = values [tiles, padded_channels] * weights, of one point.
void multiply(const WinogradArgs& a, int64_t tiles, const float* values, const float* weights,
              float* sums) {
  for (int64_t k = 0; k < a.padded_outputs; k += kCols, weights += a.channels * kCols) {
    for (int64_t i = 0; i < tiles; i += kRows) {
      const Target target{sums + i * a.padded_outputs + k,
                          a.padded_outputs,
                          1,
                          kCols,
                          false,
                          nullptr,
                          nullptr,
                          ActKind::none,
                          0};
      tile_of<false>(lesser(kRows, tiles - i))(a.channels, values + i * a.padded_channels,
                                               a.padded_channels, 1, weights, target);
    }
  }
}

/// G g for kCols outputs at once, along one axis of `kernel` taps that lie `step` apart.
__attribute__((always_inline)) inline void taps_at_points(const Vector* g, int64_t kernel,
                                                          int64_t step, Vector (&out)[kTile]) {
  for (int p = 0; p < 5; ++p) {
    Vector value = g[(kernel - 1) * step];
    for (int64_t t = kernel - 2; t >= 0; --t) value = value * kPoint[p] + g[t * step];
    out[p] = value * kScale[p];
  }
  out[5] = g[(kernel - 1) * step];
}

void convolve(const WinogradArgs& a, int64_t begin, int64_t end, float* buffer) {
  const int64_t tiles = end - begin;
  const int64_t value_step = a.block * a.padded_channels, sum_step = a.block * a.padded_outputs;
  float *values = buffer, *sums = buffer + kPoints * value_step;
  transform_tiles(a, begin, end, 0, a.channels, value_step, a.padded_channels, values);
  for (int p = 0; p < kPoints; ++p) {
    multiply(a, tiles, values + p * value_step, a.weights + p * a.channels * a.padded_outputs,
             sums + p * sum_step);
  }
  for (int64_t i = 0; i < tiles; ++i) {
    const Place place = place_of(a, begin + i);
    const float* own = sums + i * a.padded_outputs;
    if (a.kernel == 5) {
      finish_tile<2>(a, place, sum_step, own);
    } else {
      finish_tile<4>(a, place, sum_step, own);
    }
  }
}

void pack(const WinogradPackArgs& a, int64_t strip) {
  const int64_t taps = a.kernel * a.kernel, first = strip * kCols;
  const int64_t strips = (a.outputs + kCols - 1) / kCols;
  for (int64_t c = 0; c < a.channels; ++c) {
    for (int half = 0; half < 2; ++half) {
      Vector g[25];
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t tap = a.is_turned ? taps - 1 - t : t;
        g[t] = Vector{};
        for (int i = 0; i < kWidth; ++i) {
          const int64_t k = first + half * kWidth + i;
          if (k < a.outputs) g[t][i] = a.w[k * a.output_step + c * a.channel_step + tap];
        }
      }
      Vector rows[5][kTile];  // of the window, at the points along its width
      for (int64_t h = 0; h < a.kernel; ++h) {
        taps_at_points(g + h * a.kernel, a.kernel, 1, rows[h]);
      }
      for (int j = 0; j < kTile; ++j) {
        Vector points[kTile];
        taps_at_points(&rows[0][j], a.kernel, kTile, points);
        for (int i = 0; i < kTile; ++i) {
          const int64_t point = i * kTile + j;
          float* to = a.packed + ((point * strips + strip) * a.channels + c) * kCols;
          store(to + half * kWidth, points[i]);
        }
      }
    }
  }
}

}  // namespace

extern const WinogradLoops kWinogradLoops = {
    .convolve = convolve, .pack = pack, .params = winograd_params, .unpack = winograd_unpack};

}  // namespace crema::CREMA_ISA
