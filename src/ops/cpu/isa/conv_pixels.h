// The output pixels that a weight gradient sums, some at a time, and where the window of each lies:
// in x, or in a band of copied rows with their padding.
#pragma once

#include "ops/cpu/isa/micro_tile.h"

namespace crema::CREMA_ISA {

static_assert(kDepth == kConvParamsDepth);

/// Neighbouring pixels of dy in one row.
struct Row {
  int64_t pixel;      // the first one, counted through the batch
  int64_t ow, count;  // where it lies in its row, and how many
  int64_t ih;         // the first row of its windows, padding counted below 0
  const float* base;  // x, or the band
  int64_t window;     // where the first window begins behind base; may lie before it in padding
};

/// Up to kDepth pixels of dy.
struct Chunk {
  int64_t first, depth, row_count;
  Row rows[kDepth];
};

/// The pixels of a chunk that some columns need.
struct Pixels {
  int64_t depth;
  const float* base[kDepth];
  int64_t window[kDepth];
  const float* dy[kDepth];
};

inline void clear(float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = 0;
}

/// Copies the rows that outputs [oh, oh + rows) of picture n read, with their padding.
inline void copy_band(const ConvWindows& a, int64_t n, int64_t oh, int64_t rows, float* band) {
  const int64_t line = a.width * a.channels, margin = a.pad[1] * a.channels;
  const int64_t first = oh * a.stride[0] - a.pad[0];
  const int64_t count = (rows - 1) * a.stride[0] + (a.kernel[0] - 1) * a.dilation[0] + 1;
  for (int64_t r = 0; r < count; ++r, band += line + 2 * margin) {
    const int64_t ih = first + r;
    if (ih < 0 || ih >= a.height) {
      clear(band, line + 2 * margin);
      continue;
    }
    clear(band, margin);
    __builtin_memcpy(band + margin, a.x + (n * a.height + ih) * line,
                     static_cast<size_t>(line) * sizeof(float));
    clear(band + margin + line, margin);
  }
}

/// Finds, or copies into the band, the windows of a chunk.
inline void place_windows(const ConvWindows& a, float* band, Chunk& chunk) {
  const int64_t plane = a.out_height * a.out_width;
  const int64_t line = (a.width + (a.has_band ? 2 * a.pad[1] : 0)) * a.channels;
  const int64_t step = a.stride[1] * a.channels, reach = (a.kernel[0] - 1) * a.dilation[0] + 1;
  chunk.row_count = 0;
  for (int64_t i = 0; i < chunk.depth;) {
    const int64_t pixel = chunk.first + i, n = pixel / plane, oh = pixel % plane / a.out_width;
    int64_t left = lesser(chunk.depth - i, plane - pixel % plane), ow = pixel % a.out_width;
    const int64_t rows = (ow + left + a.out_width - 1) / a.out_width;
    if (a.has_band) copy_band(a, n, oh, rows, band);
    i += left;
    for (int64_t r = 0, at = pixel; r < rows; ++r) {
      const int64_t ih = (oh + r) * a.stride[0] - a.pad[0];
      const int64_t count = lesser(a.out_width - ow, left);
      const int64_t window = a.has_band
                                 ? r * a.stride[0] * line + ow * step
                                 : (n * a.height + ih) * line + ow * step - a.pad[1] * a.channels;
      chunk.rows[chunk.row_count++] = {at, ow, count, ih, a.has_band ? band : a.x, window};
      at += count;
      left -= count;
      ow = 0;
    }
    band += ((rows - 1) * a.stride[0] + reach) * line;
  }
}

/// The pixels for which the tap of some columns lies in the picture.
inline void select_pixels(const ConvWindows& a, const Chunk& chunk, const ConvColumns& columns,
                          Pixels& pixels) {
  const int64_t step = a.stride[1] * a.channels, stride = a.stride[1];
  int64_t low = 0, high = a.out_width;
  if (columns.w >= 0) {
    const int64_t shift = columns.w * a.dilation[1] - a.pad[1];
    low = shift < 0 ? (stride - 1 - shift) / stride : 0;
    high = shift < a.width ? (a.width - 1 - shift) / stride + 1 : 0;
  }
  int64_t m = 0;
  for (int64_t r = 0; r < chunk.row_count; ++r) {
    const Row& row = chunk.rows[r];
    const int64_t ih = row.ih + columns.h * a.dilation[0];
    if (columns.h >= 0 && (ih < 0 || ih >= a.height)) continue;
    const int64_t begin = low > row.ow ? low - row.ow : 0, end = lesser(high - row.ow, row.count);
    for (int64_t k = begin; k < end; ++k, ++m) {
      pixels.base[m] = row.base;
      pixels.window[m] = row.window + k * step;
      pixels.dy[m] = a.dy + (row.pixel + k) * a.out_channels;
    }
  }
  pixels.depth = m;
}

}  // namespace crema::CREMA_ISA
