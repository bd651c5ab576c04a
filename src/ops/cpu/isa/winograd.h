// The loops of Winograd's convolution, one table for each instruction set beside that of isa.h.
#pragma once

#include "ops/cpu/isa/isa.h"

namespace crema {

/// Pixels of a tile's side in a tile.
constexpr int64_t kWinogradTile = 6;

/// A 2-D nhwc convolution with step 1 and a square window of 3 or 5, of one group.
struct WinogradArgs {
  int64_t batch, channels, height, width;
  int64_t out_channels, out_height, out_width;
  int64_t from_step, to_step;  // from one pixel to the next, with all groups
  int64_t kernel;
  int64_t pad[2];
  int64_t tiles_high, tiles_wide;
  int64_t padded_channels, padded_outputs;  // to multiples of gemm_cols / 2 and of gemm_cols
  int64_t block;                            // the most tiles of a call
  const float* from;
  const float* weights;          // as WinogradLoops::pack leaves them
  const float *bias, *residual;  // or null
  float* to;
  ActKind act;
  float slope;
  bool adds;  // to what is there
};

/// Where the weights of a group lie, and where they go: [36, strips of gemm_cols outputs, channels,
/// gemm_cols].
struct WinogradPackArgs {
  int64_t channels, outputs, kernel;
  int64_t channel_step, output_step;
  bool is_turned;  // taps in opposite order
  const float* w;
  float* packed;
};

/// The weight gradient of the same convolution: from is x, and the tiles are those of y.
struct WinogradParamsArgs {
  WinogradArgs tiles;
  const float* dy;
  float* sums;  // [36, channels, padded_outputs], then in w's order by WinogradLoops::unpack
};

/// Where a gradient of weights goes.
struct WinogradUnpackArgs {
  int64_t channels, outputs, kernel;
  int64_t channel_step, output_step;
  const float* sums;
  float* dw;
  bool adds;
};

struct WinogradLoops {
  /// Tiles [begin, end), counted through the batch. buffer: 36 * block * (padded_channels +
  /// padded_outputs) floats.
  void (*convolve)(const WinogradArgs&, int64_t begin, int64_t end, float* buffer);
  /// Of gemm_cols outputs.
  void (*pack)(const WinogradPackArgs&, int64_t strip);
  /// sums of a part of the channels (rows) by the outputs, over all tiles. buffer: of the thread,
  /// as large as for convolve.
  void (*params)(const WinogradParamsArgs&, const GemmPart&, float* buffer);
  void (*unpack)(const WinogradUnpackArgs&, int64_t strip);
};

namespace isa_baseline {
extern const WinogradLoops kWinogradLoops;
}
namespace isa_avx2 {
extern const WinogradLoops kWinogradLoops;
}
namespace isa_avx512 {
extern const WinogradLoops kWinogradLoops;
}

}  // namespace crema
