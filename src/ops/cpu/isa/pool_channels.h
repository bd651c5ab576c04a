// Pooling in nhwc: vectors of channels of one position, and the winners of such vectors.
#pragma once

#include "ops/cpu/isa/pool_windows.h"
#include "ops/cpu/isa/vector.h"

namespace crema::CREMA_ISA {

/// How far ahead of a store its line is fetched: a store that misses stalls the ones behind it.
constexpr int64_t kStoreAhead = 1024;  // elements

/// Some vectors of channels from channel `first` on. The last one may begin earlier than its turn,
/// so that it ends with the channels: its first `skip` lanes were the one before's.
struct Channels {
  int64_t first, last, skip;
  template <int kBlocks>
  int64_t offset(int block) const {
    return block == kBlocks - 1 ? last : block * kWidth;
  }
};

/// Calls blocks.operator()<number of vectors>(Channels) until all channels had their turn, or
/// single(channel) where they do not fill a vector.
template <class Blocks, class Single>
__attribute__((always_inline)) inline void over_channels(int64_t channels, const Blocks& blocks,
                                                         const Single& single) {
  for (int64_t c = 0; channels < kWidth && c < channels; ++c) single(c);
  for (int64_t c = 0; channels >= kWidth && c < channels; c += 4 * kWidth) {
    const int64_t left = channels - c, count = lesser((left + kWidth - 1) / kWidth, 4);
    const int64_t usual = (count - 1) * kWidth, last = lesser(left - kWidth, usual);
    const Channels part{c, last, usual - last};
    if (count == 4) {
      blocks.template operator()<4>(part);
    } else if (count == 3) {
      blocks.template operator()<3>(part);
    } else if (count == 2) {
      blocks.template operator()<2>(part);
    } else {
      blocks.template operator()<1>(part);
    }
  }
}

/// Calls call.operator()<count>() for a count of up to 3, else <0>: that many columns are unrolled.
template <class Call>
__attribute__((always_inline)) inline void with_columns(int64_t count, const Call& call) {
  if (count == 3) return call.template operator()<3>();
  if (count == 2) return call.template operator()<2>();
  if (count == 1) return call.template operator()<1>();
  call.template operator()<0>();
}

/// Where the winners of `part` lie: all of them in one vector, a byte of each element per block.
inline uint8_t* packed_winners(const PoolArgs& a, int64_t position, const Channels& part) {
  return static_cast<uint8_t*>(a.winner) + position * a.winner_stride + part.first;
}

}  // namespace crema::CREMA_ISA
