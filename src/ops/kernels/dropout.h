// Dropout (Srivastava et al. 2014), inverted: kept elements grow by 1 / (1 - ratio). The mask is
// never stored: it is a function of (key, forward count, element), the element counted in N,C,H,W
// order whatever the layout.
#pragma once

#include "ops/functors.h"
#include "ops/kernel.h"
#include "ops/small_floats.h"

namespace crema::CREMA_ISA {

/// Pixels of one channel that share their Philox blocks in nhwc.
constexpr int64_t kDropoutRun = 32;

/// nchw: index i does elements 4i to 4i + 3 of n, which share a Philox block. nhwc: indices count
/// through runs of kDropoutRun pixels, the channels of a run innermost. Forward: x to y; backward:
/// dy to dx.
template <class T>
struct DropoutOf {
  const T* x;
  T* y;
  int64_t n;
  uint64_t key;
  const uint64_t* forward_count;
  float ratio, scale;
  bool accumulate;
  bool is_nhwc;
  Divider channels, runs;  // used in nhwc only; runs: of one picture
  int64_t plane;
  CREMA_BOTH static int64_t runs_of(int64_t plane) {
    return (plane + kDropoutRun - 1) / kDropoutRun;
  }
  CREMA_BOTH void operator()(int64_t i) const {
    if (!is_nhwc)
      return draw(static_cast<uint64_t>(4 * i), n - 4 * i < 4 ? n - 4 * i : 4, 4 * i, 1);
    const uint32_t run = channels.quotient(static_cast<uint32_t>(i));
    const int64_t c = int64_t{static_cast<uint32_t>(i) - run * channels.divisor()};
    const int64_t image = runs.quotient(run), depth = channels.divisor();
    const int64_t first = (run - image * runs.divisor()) * kDropoutRun;
    const int64_t count = plane - first < kDropoutRun ? plane - first : kDropoutRun;
    draw(static_cast<uint64_t>((image * depth + c) * plane + first), count,
         (image * plane + first) * depth + c, depth);
  }
  /// count elements from logical element `logical` on, which lie at `at`, `at` + stride, ...
  CREMA_BOTH void draw(uint64_t logical, int64_t count, int64_t at, int64_t stride) const {
    const uint64_t forwards = *forward_count;
    while (count > 0) {
      const Philox4 block = philox(key, logical / 4, forwards);
      for (uint64_t word = logical % 4; word < 4 && count > 0; ++word, --count, at += stride) {
        // Masked, not branched: half of the branches would be guessed wrong.
        const uint32_t keep = uniform01(block.v[word]) >= ratio ? 0xFFFFFFFFu : 0u;
        const float value = float_of_bits(bits_of_float(widen(x[at]) * scale) & keep);
        narrow_to(accumulate ? widen(y[at]) + value : value, y[at]);
      }
      logical = (logical / 4 + 1) * 4;
    }
  }
};

struct DropoutMask {
  static constexpr int64_t kCost = 32;
  DropoutOf<float> of;
  CREMA_BOTH void operator()(int64_t i) const { of(i); }
};

struct DropoutMaskBf16 {
  static constexpr int64_t kCost = 32;
  DropoutOf<Bf16> of;
  CREMA_BOTH void operator()(int64_t i) const { of(i); }
};

struct DropoutMaskF16 {
  static constexpr int64_t kCost = 32;
  DropoutOf<F16> of;
  CREMA_BOTH void operator()(int64_t i) const { of(i); }
};

}  // namespace crema::CREMA_ISA
