// The weight gradient of a convolution as a matrix product that never stores its second operand:
// dw [out channels, columns] = sum over pixels of dy [pixel, out channel] * window [pixel, column].
// Columns are the elements of a window in the order (tap, channel), and where there is room a last
// one of ones, which gives the bias gradient. Sums run over the pixels in order, whatever the
// number of threads.
#include "ops/cpu/isa/conv_pixels.h"
#include "ops/cpu/isa/loops.h"

namespace crema::CREMA_ISA {
namespace {

/// Packs one strip of the windows' columns. Segments are stored in whole vectors from left to
/// right: what is too much is overwritten by the next segment, row or strip.
template <int kSegments>
void pack_segments(const Pixels& pixels, const ConvSegment* segments, int64_t shift, float* to) {
  static constexpr float kOnes[kCols] = {1};
  int64_t column[kSegments], offset[kSegments];
  bool is_long[kSegments], is_constant[kSegments];
  for (int s = 0; s < kSegments; ++s) {
    column[s] = segments[s].column;
    offset[s] = segments[s].offset;
    is_long[s] = segments[s].count > kWidth;
    is_constant[s] = segments[s].offset < 0;
  }
  for (int64_t k = 0; k < pixels.depth; ++k, to += kCols) {
    const float* window = pixels.base[k] + (pixels.window[k] + shift);
#pragma GCC unroll 4
    for (int s = 0; s < kSegments; ++s) {
      const float* from = is_constant[s] ? kOnes : window + offset[s];
      store(to + column[s], load(from));
      if (is_long[s]) store(to + column[s] + kWidth, load(from + kWidth));
    }
  }
}

/// A strip whose columns lie in one piece; where it has fewer, what follows them fills it.
void pack_piece(const Pixels& pixels, int64_t offset, float* to) {
  for (int64_t k = 0; k < pixels.depth; ++k, to += kCols) {
    const float* from = pixels.base[k] + (pixels.window[k] + offset);
    store(to, load(from));
    store(to + kWidth, load(from + kWidth));
  }
}

void pack_strip(const Pixels& pixels, const ConvSegment* begin, const ConvSegment* end,
                int64_t shift, float* to) {
  switch (end - begin) {
    case 1:
      if (begin->offset >= 0) return pack_piece(pixels, shift + begin->offset, to);
      return pack_segments<1>(pixels, begin, shift, to);
    case 2:
      return pack_segments<2>(pixels, begin, shift, to);
    case 3:
      return pack_segments<3>(pixels, begin, shift, to);
    case 4:
      return pack_segments<4>(pixels, begin, shift, to);
    default:
      break;
  }
  // Many short segments: column by column.
  for (; begin != end; ++begin) {
    for (int64_t i = 0; i < begin->count; ++i) {
      float* column = to + begin->column + i;
      for (int64_t k = 0; k < pixels.depth; ++k) {
        const float* window = pixels.base[k] + (pixels.window[k] + shift);
        column[k * kCols] = begin->offset >= 0 ? window[begin->offset + i] : (i == 0 ? 1.0f : 0.0f);
      }
    }
  }
}

/// Packs the windows' columns [begin, end) into strips.
void pack_windows(const ConvParamsArgs& a, const Pixels& pixels, int64_t shift, int64_t begin,
                  int64_t end, float* to) {
  for (int64_t j = begin; j < end; j += kCols, to += kCols * pixels.depth) {
    const int32_t* range = a.segment_begin + j / kCols;
    pack_strip(pixels, a.segments + range[0], a.segments + range[1], shift, to);
  }
}

/// Packs dy's channels [begin, begin + count) into strips of kRows, some strips at a time.
void pack_gradients(const Pixels& pixels, int64_t begin, int64_t count, float* to) {
  constexpr int64_t kTogether = 8 * kRows;
  const int64_t depth = pixels.depth;
  for (int64_t r0 = 0; r0 < count; r0 += kTogether) {
    const int64_t some = lesser(kTogether, count - r0), whole = some / kRows * kRows;
    for (int64_t k = 0; k < depth; ++k) {
      const float* from = pixels.dy[k] + begin + r0;
      float* target = to + r0 * depth + k * kRows;
      for (int64_t r = 0; r < whole; r += kRows) {
        __builtin_memcpy(target + r * depth, from + r, kRows * sizeof(float));
      }
      for (int64_t r = whole; r < some; ++r) target[whole * depth + r - whole] = from[r];
    }
  }
}

/// The pixels' share of the sums of columns [begin, end), packed in the part's buffer.
void add_products(const ConvParamsArgs& a, const GemmPart& part, const Pixels& pixels,
                  int64_t first_row, int64_t begin, int64_t end) {
  const int64_t rows = part.row_end - part.row_begin, most = kGemmPackedA / kDepth / kRows * kRows;
  const int64_t depth = pixels.depth;
  float* packed_a = part.buffer + kGemmPackedB;
  for (int64_t i0 = 0; i0 < rows; i0 += most) {
    const int64_t count = lesser(most, rows - i0);
    pack_gradients(pixels, first_row + i0, count, packed_a);
    for (int64_t j = begin; j < end; j += kCols) {
      for (int64_t i = 0; i < count; i += kRows) {
        float* sums = a.sums + (first_row + i0 + i) * a.columns + j;
        const Target target{sums, a.columns, 1, kCols, true, nullptr, nullptr, ActKind::none, 0};
        tile_of<true>(lesser(kRows, count - i))(depth, packed_a + i * depth, 1, kRows,
                                                part.buffer + (j - begin) * depth, target);
      }
    }
  }
}

/// One chunk's share of columns that need the same pixels.
void add_columns(const ConvParamsArgs& a, const GemmPart& part, const Pixels& pixels,
                 int64_t col_begin, int64_t col_end) {
  constexpr int64_t kBlock = kGemmPackedB / kDepth / kCols * kCols;
  for (int64_t group = 0; group < a.groups; ++group) {
    const int64_t shift = group * (a.channels / a.groups);
    const int64_t first_row = group * (a.out_channels / a.groups) + part.row_begin;
    for (int64_t j = col_begin; j < col_end; j += kBlock) {
      const int64_t end = lesser(j + kBlock, col_end);
      pack_windows(a, pixels, shift, j, end, part.buffer);
      add_products(a, part, pixels, first_row, j, end);
    }
  }
}

void clear_sums(const ConvParamsArgs& a, const GemmPart& part) {
  const int64_t per_group = a.out_channels / a.groups;
  for (int64_t group = 0; group < a.groups; ++group) {
    for (int64_t r = part.row_begin; r < part.row_end; ++r) {
      clear(a.sums + (group * per_group + r) * a.columns + part.col_begin,
            part.col_end - part.col_begin);
    }
  }
}

}  // namespace

void conv_params(const ConvParamsArgs& a, const GemmPart& part, float* band) {
  const int64_t pixels = a.batch * a.out_height * a.out_width;
  clear_sums(a, part);
  Chunk chunk;
  Pixels selected;
  for (chunk.first = 0; chunk.first < pixels; chunk.first += kDepth) {
    chunk.depth = lesser(kDepth, pixels - chunk.first);
    place_windows(a, band, chunk);
    for (const ConvColumns* c = a.column_groups; c != a.column_groups_end; ++c) {
      const int64_t begin = c->begin > part.col_begin ? c->begin : part.col_begin;
      const int64_t end = lesser(c->end, part.col_end);
      if (begin >= end) continue;
      select_pixels(a, chunk, *c, selected);
      if (selected.depth > 0) add_columns(a, part, selected, begin, end);
    }
  }
}

}  // namespace crema::CREMA_ISA
