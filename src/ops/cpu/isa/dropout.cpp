// Dropout's masks, drawn a vector of Philox blocks at a time.
#include "ops/cpu/isa/philox_lanes.h"
#include "ops/cpu/isa/ranges.h"

namespace crema::CREMA_ISA {
namespace {

constexpr int64_t kFetched = 2 * kWidth;  // elements ahead within a pixel

__attribute__((always_inline)) inline Vector kept(Vector x, Words words, float scale, float ratio) {
  const Vector uniform =
      __builtin_convertvector(reinterpret_cast<IntVector>(words >> 8), Vector) * 0x1p-24f;
  return reinterpret_cast<Vector>(reinterpret_cast<IntVector>(x * scale) & (uniform >= ratio));
}

__attribute__((always_inline)) inline void apply(const DropoutOf<float>& f, int64_t at,
                                                 Words words) {
  Vector y = kept(load(f.x + at), words, f.scale, f.ratio);
  if (f.accumulate) y = load(f.y + at) + y;
  store(f.y + at, y);
}

/// Blocks [begin, end) of nchw, each of four elements side by side.
void run_in_order(const DropoutOf<float>& f, int64_t begin, int64_t end) {
  const uint64_t forwards = *f.forward_count;
  Wide lanes;
  for (int i = 0; i < kWideLanes; ++i) lanes[i] = static_cast<uint64_t>(i);
  int64_t block = begin;
  for (; block + kWideLanes <= end && 4 * (block + kWideLanes) <= f.n; block += kWideLanes) {
    const WideBlocks drawn = philox_lanes(f.key, lanes + static_cast<uint64_t>(block), forwards);
    alignas(64) uint64_t pairs[2 * kWideLanes];
    for (int i = 0; i < kWideLanes; ++i) {
      pairs[2 * i] = drawn.first[i];
      pairs[2 * i + 1] = drawn.second[i];
    }
    apply(f, 4 * block, load<Words>(pairs));
    apply(f, 4 * block + kWidth, load<Words>(pairs + kWideLanes));
  }
  for (; block < end; ++block) f(block);
}

/// A run of pixels of one picture, of which `count` lie in it, and up to kWidth channels of them
/// side by side from element `at` on. The first one's first element is number `logical`.
struct Group {
  int64_t channels, count, at;
  uint64_t logical;
};

constexpr int kRunBlocks = kDropoutRun / 4 + 1;  // one more, since a run may begin within a block

/// Word r of each channel's run, counted from the beginning of its first block, is rows[r].
void draw_rows(const DropoutOf<float>& f, const Group& g, Words (&rows)[4 * kRunBlocks]) {
  const uint64_t forwards = *f.forward_count, plane = static_cast<uint64_t>(f.plane);
  // Even channels in one vector, odd ones in the other.
  Wide even, odd;
  for (int i = 0; i < kWideLanes; ++i) {
    even[i] = (g.logical + static_cast<uint64_t>(2 * i) * plane) / 4;
    odd[i] = (g.logical + static_cast<uint64_t>(2 * i + 1) * plane) / 4;
  }
  const auto blocks = static_cast<int>((g.count + 3 + 3) / 4);
  for (int b = 0; b < blocks; ++b, even += 1, odd += 1) {
    const WideBlocks e = philox_lanes(f.key, even, forwards),
                     o = philox_lanes(f.key, odd, forwards);
    rows[4 * b] = reinterpret_cast<Words>((e.first & 0xFFFFFFFFu) | o.first << 32);
    rows[4 * b + 1] = reinterpret_cast<Words>(e.first >> 32 | (o.first & ~uint64_t{0xFFFFFFFFu}));
    rows[4 * b + 2] = reinterpret_cast<Words>((e.second & 0xFFFFFFFFu) | o.second << 32);
    rows[4 * b + 3] = reinterpret_cast<Words>(e.second >> 32 | (o.second & ~uint64_t{0xFFFFFFFFu}));
  }
}

void run_group(const DropoutOf<float>& f, const Group& g) {
  const int64_t depth = f.channels.divisor();
  Words rows[4 * kRunBlocks];
  draw_rows(f, g, rows);
  Words skipped;  // words of the first block that belong to the run before
  for (int i = 0; i < kWidth; ++i) {
    skipped[i] = static_cast<uint32_t>((g.logical + static_cast<uint64_t>(i * f.plane)) % 4);
  }
  for (int64_t p = 0; p < g.count; ++p) {
    Words words = rows[p];
    words = skipped == 1 ? rows[p + 1] : words;
    words = skipped == 2 ? rows[p + 2] : words;
    words = skipped == 3 ? rows[p + 3] : words;
    const int64_t at = g.at + p * depth;
    if (g.channels == kWidth) {
      __builtin_prefetch(f.x + at + kFetched);
      __builtin_prefetch(f.y + at + kFetched, 1);
      apply(f, at, words);
      continue;
    }
    for (int64_t i = 0; i < g.channels; ++i) {
      const uint32_t keep = uniform01(words[i]) >= f.ratio ? 0xFFFFFFFFu : 0u;
      const float value = float_of_bits(bits_of_float(f.x[at + i] * f.scale) & keep);
      f.y[at + i] = f.accumulate ? f.y[at + i] + value : value;
    }
  }
}

}  // namespace

void run_range(const DropoutMask& mask, int64_t begin, int64_t end) {
  const DropoutOf<float>& f = mask.of;
  if (!f.is_nhwc) return run_in_order(f, begin, end);
  const int64_t depth = f.channels.divisor(), runs = f.runs.divisor();
  for (int64_t i = begin; i < end;) {
    const int64_t run = f.channels.quotient(static_cast<uint32_t>(i)), c = i - run * depth;
    const int64_t image = f.runs.quotient(static_cast<uint32_t>(run));
    const int64_t first = (run - image * runs) * kDropoutRun;
    Group g{.channels = depth - c < end - i ? depth - c : end - i,
            .count = f.plane - first < kDropoutRun ? f.plane - first : kDropoutRun,
            .at = (image * f.plane + first) * depth + c,
            .logical = static_cast<uint64_t>((image * depth + c) * f.plane + first)};
    if (g.channels > kWidth) g.channels = kWidth;
    run_group(f, g);
    i += g.channels;
  }
}

}  // namespace crema::CREMA_ISA
