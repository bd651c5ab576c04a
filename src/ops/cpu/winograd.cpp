// Sizes, blocks of tiles for threads, and where each group lies.
#include "ops/cpu/winograd.h"

#include <cstdlib>
#include <string_view>

#include "ops/cpu/conv_sizes.h"
#include "ops/cpu/parallel.h"

namespace crema {
namespace {

constexpr int64_t kPoints = kWinogradTile * kWinogradTile;
constexpr int64_t kFewestChannels = 16;   // below, transforms cost more than products
constexpr int64_t kFewestOfParams = 24;   // the same of the weight gradient
constexpr int64_t kFewestTiles = 48;      // below, weights are read more than used
constexpr int64_t kStrip = 16;            // outputs that are computed together, or twice that
constexpr double kLeastGain = 1.5;        // in multiplications
constexpr int64_t kMostWeights = 160000;  // products of channels; each takes 144 bytes
// Transformed pixels and sums of a block, in floats: of a thread, and of all together.
constexpr int64_t kBlockFloats = int64_t{1} << 18, kParamsFloats = int64_t{1} << 21;
constexpr int64_t kAllFloats = int64_t{1} << 24;
constexpr int64_t kSmallestBlock = 12, kGoodBlock = 28, kLargestBlock = 192;  // tiles

bool is_allowed() {
  const char* wish = std::getenv("CREMA_WINOGRAD");
  return wish == nullptr || std::string_view(wish) != "off";
}

int64_t tiles_along(int64_t size, int64_t kernel) {
  const int64_t outputs = kWinogradTile - kernel + 1;
  return (size + outputs - 1) / outputs;
}

int64_t padded(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

const WinogradLoops& loops_of([[maybe_unused]] const Isa& isa) {
#ifdef CREMA_HAS_X86_ISAS
  if (&isa == &isa_avx512::kIsa) return isa_avx512::kWinogradLoops;
  if (&isa == &isa_avx2::kIsa) return isa_avx2::kWinogradLoops;
#endif
  return isa_baseline::kWinogradLoops;
}

/// Sizes of a convolution from `from` to `to`; the rest of the arguments is left empty.
WinogradArgs sizes_of(const Isa& isa, const ConvDesc& desc, bool is_data) {
  const Shape& from = is_data ? desc.y.shape : desc.x.shape;
  const Shape& to = is_data ? desc.x.shape : desc.y.shape;
  WinogradArgs args{};
  args.batch = to[0];
  args.channels = from[1] / desc.groups;
  args.height = from[2];
  args.width = from[3];
  args.out_channels = to[1] / desc.groups;
  args.out_height = to[2];
  args.out_width = to[3];
  args.from_step = from[1];
  args.to_step = to[1];
  args.kernel = desc.w.shape[2];
  for (int axis = 0; axis < 2; ++axis) {
    args.pad[axis] = is_data ? args.kernel - 1 - desc.pad[axis] : desc.pad[axis];
  }
  args.tiles_high = tiles_along(to[2], args.kernel);
  args.tiles_wide = tiles_along(to[3], args.kernel);
  args.padded_channels = padded(args.channels, isa.gemm_cols / 2);
  args.padded_outputs = padded(args.out_channels, isa.gemm_cols);
  return args;
}

/// Tiles of a block: as many as stay near, fewer where many threads keep theirs.
int64_t block_of(const WinogradArgs& args, int threads, int64_t most_floats) {
  const int64_t floats = std::min(most_floats, kAllFloats / threads);
  const int64_t fits = floats / (kPoints * (args.padded_channels + args.padded_outputs));
  const int64_t least = threads <= 8 ? kGoodBlock : kSmallestBlock;
  return std::clamp(fits, least, kLargestBlock);
}

int64_t buffer_of(const WinogradArgs& args) {
  return kPoints * args.block * (args.padded_channels + args.padded_outputs);
}

int64_t tiles_of(const WinogradArgs& args) {
  return args.batch * args.tiles_high * args.tiles_wide;
}

/// In elements of a plain copy.
int64_t work_of(const WinogradArgs& args) {
  return tiles_of(args) * kPoints * args.channels * args.padded_outputs / 16;
}

}  // namespace

bool winograd_suits(const ConvDesc& desc, ConvDirection direction) {
  if (desc.pad.axes != 2 || desc.y.count() == 0 || !is_allowed()) return false;
  const int64_t kernel = desc.w.shape[2];
  if ((kernel != 3 && kernel != 5) || desc.w.shape[3] != kernel) return false;
  for (int axis = 0; axis < 2; ++axis) {
    if (desc.stride[axis] != 1 || desc.dilation[axis] != 1 || desc.pad[axis] >= kernel) {
      return false;
    }
  }
  const int64_t channels = desc.w.shape[1], outputs = desc.w.shape[0] / desc.groups;
  const bool is_data = direction == ConvDirection::data;
  const Shape& to = is_data ? desc.x.shape : desc.y.shape;
  const int64_t tiles = tiles_along(to[2], kernel) * tiles_along(to[3], kernel);
  const int64_t filled = is_data ? channels : outputs;
  const auto direct = static_cast<double>(desc.y.shape.count(2) * kernel * kernel * filled);
  const auto products = static_cast<double>(tiles * kPoints * padded(filled, kStrip));
  const int64_t least = direction == ConvDirection::params ? kFewestOfParams : kFewestChannels;
  return channels >= least && outputs >= least && channels * outputs <= kMostWeights &&
         tiles * to[0] >= kFewestTiles && direct >= kLeastGain * products;
}

Winograd::Winograd(const Isa& isa, const Gemm& gemm, const ConvDesc& desc, ConvDirection direction)
    : isa_(isa),
      loops_(loops_of(isa)),
      gemm_(gemm),
      args_(sizes_of(isa, desc, direction == ConvDirection::data)),
      groups_(desc.groups),
      tiles_(tiles_of(args_)) {
  const bool is_data = direction == ConvDirection::data;
  const int64_t taps = args_.kernel * args_.kernel, row = desc.w.shape[1] * taps;
  const int64_t share = (tiles_ + omp_get_max_threads() - 1) / omp_get_max_threads();
  const int64_t wanted = std::min(block_of(args_, gemm.most_threads(), kBlockFloats), share);
  args_.block = padded(std::max<int64_t>(wanted, 1), isa.gemm_rows);
  pack_.channels = args_.channels;
  pack_.outputs = args_.out_channels;
  pack_.kernel = args_.kernel;
  pack_.channel_step = is_data ? row : taps;
  pack_.output_step = is_data ? taps : row;
  pack_.is_turned = is_data;
}

int64_t Winograd::packed_group() const { return kPoints * args_.channels * args_.padded_outputs; }

size_t Winograd::packed_bytes() const {
  return sizeof(float) * static_cast<size_t>(groups_ * packed_group());
}

size_t Winograd::scratch_bytes() const {
  return sizeof(float) * static_cast<size_t>(gemm_.most_threads() * buffer_of(args_));
}

void Winograd::pack(const float* w, float* packed) const {
  const int64_t strips = args_.padded_outputs / isa_.gemm_cols;
  const int64_t weights = args_.channels * args_.out_channels * args_.kernel * args_.kernel;
  parallel_ranges(groups_ * strips, groups_ * weights * 16, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      WinogradPackArgs args = pack_;
      const int64_t group = i / strips;
      args.w = w + group * weights;
      args.packed = packed + group * packed_group();
      loops_.pack(args, i % strips);
    }
  });
}

void Winograd::run(const float* from, const float* packed, const Additions& additions, bool adds,
                   float* to, float* scratch) const {
  const int64_t blocks = (tiles_ + args_.block - 1) / args_.block;
  parallel_ranges(blocks, groups_ * work_of(args_), 1, [&](int64_t begin, int64_t end) {
    const int rank = omp_in_parallel() ? omp_get_thread_num() : 0;
    for (int64_t group = 0; group < groups_; ++group) {
      WinogradArgs args = args_;
      args.from = from + group * args_.channels;
      args.weights = packed + group * packed_group();
      const int64_t first = group * args_.out_channels;
      args.to = to + first;
      args.bias = additions.bias ? additions.bias + first : nullptr;
      args.residual = additions.residual ? additions.residual + first : nullptr;
      args.act = additions.act.kind;
      args.slope = additions.act.slope;
      args.adds = adds;
      for (int64_t block = begin; block < end; ++block) {
        const int64_t tile = block * args_.block;
        loops_.convolve(args, tile, std::min(tile + args_.block, tiles_),
                        scratch + rank * buffer_of(args_));
      }
    }
  });
}

WinogradParams::WinogradParams(const Isa& isa, const Gemm& gemm, const ConvDesc& desc)
    : isa_(isa), loops_(loops_of(isa)), gemm_(gemm), groups_(desc.groups) {
  WinogradArgs& tiles = args_.tiles;
  tiles = sizes_of(isa, desc, false);
  tiles_ = tiles_of(tiles);
  // Sums go through memory once a block, so blocks are larger than forward's.
  const int64_t wanted = std::min(block_of(tiles, gemm.most_threads(), kParamsFloats), tiles_);
  tiles.block = padded(wanted, isa.gemm_rows);
  unpack_.channels = tiles.channels;
  unpack_.outputs = tiles.out_channels;
  unpack_.kernel = tiles.kernel;
  unpack_.channel_step = tiles.kernel * tiles.kernel;
  unpack_.output_step = tiles.channels * unpack_.channel_step;
}

int64_t WinogradParams::sums() const {
  return kPoints * args_.tiles.channels * args_.tiles.padded_outputs;
}

size_t WinogradParams::scratch_bytes() const {
  return sizeof(float) *
         static_cast<size_t>(sums() + gemm_.most_threads() * buffer_of(args_.tiles));
}

void WinogradParams::run(const float* x, const float* dy, Grad dw, Grad db, float* scratch) const {
  const WinogradArgs& tiles = args_.tiles;
  for (int64_t group = 0; dw && group < groups_; ++group) {
    WinogradParamsArgs args = args_;
    args.tiles.from = x + group * tiles.channels;
    args.dy = dy + group * tiles.out_channels;
    args.sums = scratch;
    WinogradUnpackArgs out = unpack_;
    out.sums = scratch;
    out.dw = dw.t.f32() + group * tiles.out_channels * unpack_.output_step;
    out.adds = dw.how == Write::accumulate;
    weights(args, scratch + sums(), out);
  }
  if (!db) return;
  const int64_t pixels = tiles.batch * tiles.out_height * tiles.out_width;
  const ColumnSums bias{dy, db.t.f32(), pixels, tiles.to_step, db.how == Write::accumulate};
  parallel_ranges(tiles.to_step, pixels * tiles.to_step, 64,
                  [&](int64_t begin, int64_t end) { isa_.column_sums(bias, begin, end); });
}

void WinogradParams::weights(const WinogradParamsArgs& args, float* buffers,
                             const WinogradUnpackArgs& out) const {
  const WinogradArgs& tiles = args.tiles;
  gemm_.split(tiles.channels, tiles.padded_outputs, work_of(tiles),
              [&](int rank, const GemmPart& part) {
                loops_.params(args, part, buffers + rank * buffer_of(tiles));
              });
  parallel_ranges(tiles.padded_outputs / isa_.gemm_cols, sums() * 4, 1,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t strip = begin; strip < end; ++strip) {
                      loops_.unpack(out, strip);
                    }
                  });
}

}  // namespace crema
