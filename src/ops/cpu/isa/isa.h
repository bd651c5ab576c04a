// What is compiled once per instruction set: the inner loops of everything that oneDNN does not do.
// Each loop works on a range that its caller chose, so threads are the caller's; the best table is
// chosen at run time. Only plain data crosses this border: an inline function shared with other
// files could be merged by the linker into its copy for a newer processor.
#pragma once

#include <cstdint>

#include "ops/ops.h"

namespace crema {

/// One functor of ops/kernels/*.h in compiled form; launch or sum is null where it has no such
/// call.
struct KernelEntry {
  const char* name;
  int64_t cost;  // of one index, in elements of a plain copy
  void (*launch)(const void* functor, int64_t begin, int64_t end);
  /// Adds functor(row, col) over [begin, end): kSumBlock elements at a time, in 16 fixed lanes.
  double (*sum)(const void* functor, int64_t row, int64_t begin, int64_t end);
  void (*done)(const void* functor, int64_t row, float sum);
};
constexpr int64_t kSumBlock = 1024;

/// Operands of an update rule over [begin, end) of a group's memory.
struct UpdateArgs {
  const float* grad;
  float* history[2];
  float* master;
  float rate, grad_scale, adam_correction;
};

/// dst [cols, rows] = transposed src [rows, cols], for a block of src's rows and columns. Elements
/// are f32, or bf16 where src_is_low and dst_is_low say so.
struct TransposeArgs {
  const void* src;
  void* dst;
  int64_t rows, cols;
  int64_t row_begin, row_end, col_begin, col_end;
  bool src_is_low = false, dst_is_low = false;
};

/// Along three spatial axes, outermost first.
struct PoolShape {
  int64_t size[3], out[3], kernel[3], stride[3], pad[3];
  int64_t channels;
};

/// Rows of a window for which bytes are kept; of more, one channel at a time has its turn.
constexpr int64_t kMostPoolRows = 64;

struct PoolArgs {
  PoolShape shape;
  PoolKind kind;
  bool train, accumulate;
  /// Per output which element of its window won: bytes (255: none), or int32 (-1: none) where
  /// has_wide_winner: always of windows of more than kMostPoolRows rows. May be null in forward.
  bool has_wide_winner;
  int64_t winner_stride;  // nhwc: bytes of a position, a multiple of 64
  void* winner;
  const float* x;
  const float* dy;
  float* y;
  float* mask;
  float* dx;
  uint64_t seed, forward_count;
};

/// y [cols] (+)= sum over the rows of x [rows, cols].
struct ColumnSums {
  const float* x;
  float* y;
  int64_t rows, cols;
  bool accumulate;
};

/// Of one channel; in backward mean and m2 hold the sums of dy and of dy * (x - mean).
struct NormMoments {
  double mean, m2, count;
};

/// A tensor as rows x channels (nhwc) or batch x channels x plane (nchw).
struct NormArgs {
  int64_t rows, batch, channels, plane;
  int64_t part_rows;     // nhwc: rows of one part of a sum
  NormMoments* moments;  // [parts, channels], or [channels] in nchw
  float slope;           // of the relu behind; 1: none
  bool accumulate;
  bool is_low;  // x, y, dy and dx are bf16, else f32
  const void* x;
  const float* mean;
  /// Forward: y = (x - mean) * scale + shift. Backward: dx = scale * dy + slant * (x - mean) +
  /// shift.
  const float *scale, *shift, *slant;
  void* y;
  const void *y_read, *dy;
  void* dx;
};

/// A tensor as [outer, n, inner].
struct SoftmaxArgs {
  int64_t n, inner;
  const float* x;
  float* y;
  const float* dy;
  float* dx;
  bool accumulate;
};

/// The longest window across channels that the fast loops take.
constexpr int64_t kMostLrnSize = 31;

/// alpha is per element of the window.
struct LrnArgs {
  int64_t channels, plane, height, width;
  int64_t size;
  float alpha, beta, k;
  bool is_nhwc, accumulate;
  const float* x;
  float* y;
  const float* dy;
  float* dx;
  float *ratio, *shrink;  // within: from one backward pass to the other
};

/// Element (i, j) lies at data + i * row_stride + j * col_stride.
struct MatrixView {
  const float* data;
  int64_t row_stride, col_stride;
};

/// c [m, n] = act(alpha * a [m, k] * b [k, n] + biases), or added to what c holds.
struct GemmArgs {
  MatrixView a, b;
  float* c = nullptr;
  int64_t c_row_stride = 0, c_col_stride = 1;
  int64_t m = 0, n = 0, k = 0;
  float alpha = 1;
  bool accumulate = false;
  bool packs_a = false;             // worth it where n is long
  const float* row_bias = nullptr;  // [m], or null
  const float* col_bias = nullptr;  // [n], or null
  ActKind act = ActKind::none;
  float slope = 0;
};
/// What one thread does: borders are multiples of gemm_rows and gemm_cols; buffer has
/// kGemmPackedB + kGemmPackedA floats.
struct GemmPart {
  int64_t row_begin, row_end, col_begin, col_end;
  float* buffer;
};
constexpr int64_t kGemmPackedB = 262144, kGemmPackedA = 32768;

/// Columns of a strip that lie in one piece: where the first one lies from the first element of a
/// window.
struct ConvSegment {
  int32_t column, count, offset;
};
/// In place of an offset: a column of ones, whose sums are the bias gradient, then zeros.
constexpr int32_t kOnesColumn = -1;
/// Columns (or pieces) [begin, end) of the taps in row h of the window (-1: in any), at place
/// w of the row (-1: at any): pixels for which these lie in padding need not be summed.
struct ConvColumns {
  int32_t begin, end, h, w;
};
/// Pixels that are summed at a time.
constexpr int64_t kConvParamsDepth = 256;

/// A 2-D nhwc convolution whose weight gradient is wanted.
struct ConvWindows {
  int64_t batch, channels, height, width;
  int64_t out_channels, out_height, out_width;
  int64_t kernel[2], stride[2], pad[2], dilation[2];
  int64_t groups;
  bool has_band;  // the rows that a chunk of pixels reads are copied, with their padding
  const float *x, *dy;
};

/// Its sums over packed windows.
struct ConvParamsArgs : ConvWindows {
  int64_t columns;  // per group, a multiple of gemm_cols
  const ConvColumns *column_groups, *column_groups_end;
  /// Strip s of gemm_cols columns has segments [segment_begin[s], segment_begin[s + 1]).
  const ConvSegment* segments;
  const int32_t* segment_begin;
  float* sums;  // [out_channels, columns]
};

/// Its sums over windows that are read where they lie.
struct ConvOuterArgs : ConvWindows {
  int64_t elements;        // of a window of one group
  int64_t padded_outputs;  // per group, a multiple of half of gemm_cols
  /// Up to gemm_rows elements of a window in one piece each; column: which elements they are.
  const ConvSegment* pieces;
  /// Of pieces [begin, end).
  const ConvColumns *groups_begin, *groups_end;
  float* sums;  // [groups, elements, padded_outputs]
  /// [groups, padded_outputs], or null; the same bits as those of column_sums.
  double* bias_sums;
};

/// The weight gradient of a 2-D nhwc convolution whose groups have one channel each.
struct ConvDepthwiseArgs {
  int64_t batch, channels, height, width, out_height, out_width;
  int64_t kernel[2], stride[2], pad[2], dilation[2];
  const float *x, *dy;
  float* sums;  // [taps, channels]
};

/// A 2-D nhwc convolution with 3 x 3 windows whose groups have one channel each, or its data
/// gradient, which is such a convolution of dy where the step is 1 and else spreads dy by 2.
struct DepthwiseArgs {
  int64_t batch, channels;  // whole vectors of channels
  int64_t height, width;    // of x
  int64_t out_height, out_width;
  int64_t stride, pad[2];
  bool spreads, accumulate;
  float slope;         // of the relu behind; 1: none
  const float *x, *w;  // w: [taps, channels]
  const float* bias;   // or null
  float* y;
};

struct Isa {
  const char* name;
  const KernelEntry* kernels;
  int kernel_count;

  void (*unary)(Unary, const UnaryArgs&, const float* x, float* y, int64_t n);
  /// dx = or += dy * f'.
  void (*unary_backward)(Unary, const UnaryArgs&, const float* x, const float* y, const float* dy,
                         float* dx, int64_t n, bool accumulate);
  void (*update)(const UpdateRule&, const UpdateArgs&, int64_t begin, int64_t end);

  void (*add)(const float* src, float* dst, int64_t n);
  /// f32 to bf16, rounded to nearest even, and back.
  void (*narrow)(const float* x, uint16_t* y, int64_t n);
  void (*widen)(const uint16_t* x, float* y, int64_t n);
  void (*transpose)(const TransposeArgs&);
  /// For columns [begin, end).
  void (*column_sums)(const ColumnSums&, int64_t begin, int64_t end);

  void (*gemm)(const GemmArgs&, const GemmPart&);
  /// For few columns of b, where a and b lie along k in one piece: rows [begin, end).
  void (*gemm_dots)(const GemmArgs&, int64_t begin, int64_t end);
  int gemm_rows, gemm_cols;  // of a micro-tile
  /// sums for a part of the out channels of each group by the columns. band: memory of the thread
  /// for the rows that one chunk of pixels reads, and gemm_cols elements that may be read behind.
  void (*conv_params)(const ConvParamsArgs&, const GemmPart&, float* band);
  /// The same for pieces [row_begin / gemm_rows, row_end / gemm_rows) by outputs.
  void (*conv_outer)(const ConvOuterArgs&, const GemmPart&, float* band);
  /// sums of channels [begin, end), multiples of half of gemm_cols.
  void (*conv_depthwise)(const ConvDepthwiseArgs&, int64_t begin, int64_t end);
  /// Over rows of y, counted through the batch.
  void (*depthwise)(const DepthwiseArgs&, int64_t begin, int64_t end);

  /// nhwc: rows of y (forward) or x (backward) counted through the batch; nchw: planes.
  void (*pool_forward_nhwc)(const PoolArgs&, int64_t begin, int64_t end);
  void (*pool_forward_nchw)(const PoolArgs&, int64_t begin, int64_t end);
  void (*pool_backward_nhwc)(const PoolArgs&, int64_t begin, int64_t end);
  void (*pool_backward_nchw)(const PoolArgs&, int64_t begin, int64_t end);

  /// moments and sums: over parts of the rows (nhwc) or channels (nchw); apply and dx: over rows or
  /// planes.
  void (*norm_moments_nhwc)(const NormArgs&, int64_t begin, int64_t end);
  void (*norm_moments_nchw)(const NormArgs&, int64_t begin, int64_t end);
  void (*norm_apply_nhwc)(const NormArgs&, int64_t begin, int64_t end);
  void (*norm_apply_nchw)(const NormArgs&, int64_t begin, int64_t end);
  void (*norm_sums_nhwc)(const NormArgs&, int64_t begin, int64_t end);
  void (*norm_sums_nchw)(const NormArgs&, int64_t begin, int64_t end);
  void (*norm_dx_nhwc)(const NormArgs&, int64_t begin, int64_t end);
  void (*norm_dx_nchw)(const NormArgs&, int64_t begin, int64_t end);

  /// Across: over places counted through the batch. within: over lines of pixels; ratio before
  /// backward.
  void (*lrn_forward)(const LrnArgs&, int64_t begin, int64_t end);
  void (*lrn_backward)(const LrnArgs&, int64_t begin, int64_t end);
  void (*lrn_within_forward)(const LrnArgs&, int64_t begin, int64_t end);
  void (*lrn_within_ratio)(const LrnArgs&, int64_t begin, int64_t end);
  void (*lrn_within_backward)(const LrnArgs&, int64_t begin, int64_t end);

  /// Over the positions outside of n, counted through outer and inner.
  void (*softmax_forward)(const SoftmaxArgs&, int64_t begin, int64_t end);
  void (*softmax_backward)(const SoftmaxArgs&, int64_t begin, int64_t end);
};

/// The best table that this processor can run, or the one that CREMA_ISA=baseline|avx2|avx512 in
/// the environment asks for; throws Error where that is not here.
const Isa& best_isa();
/// The table of that name, or nullptr where the processor (or this build) has it not.
const Isa* isa_named(const char* name);

namespace isa_baseline {
extern const Isa kIsa;
}
namespace isa_avx2 {
extern const Isa kIsa;
}
namespace isa_avx512 {
extern const Isa kIsa;
}

}  // namespace crema
