// The random fillers on a device: every value a function of (key, forward count, element).
#pragma once

#include <cmath>

#include "ops/kernel.h"

namespace crema {
namespace CREMA_ISA {

/// y uniform in [low, low + range).
struct UniformFill {
  static constexpr int64_t kCost = 32;
  float* y;
  const uint64_t* forward_count;
  uint64_t key;
  float low, range;
  CREMA_BOTH void operator()(int64_t i) const {
    y[i] = low + range * uniform01(philox(key, static_cast<uint64_t>(i), *forward_count).v[0]);
  }
};

/// y normal (Box-Muller), replaced by 0 with probability 1 - keep.
struct GaussianFill {
  static constexpr int64_t kCost = 96;
  float* y;
  const uint64_t* forward_count;
  uint64_t key;
  float mean, std, keep;
  CREMA_BOTH void operator()(int64_t i) const {
    const Philox4 words = philox(key, static_cast<uint64_t>(i), *forward_count);
    const float radius = std::sqrt(-2 * std::log(1 - uniform01(words.v[0])));
    const float normal = radius * std::cos(6.283185307f * uniform01(words.v[1]));
    y[i] = uniform01(words.v[2]) < keep ? mean + std * normal : 0.0f;
  }
};

/// total[row] = sum of the row.
struct RowTotals {
  const float* y;
  float* total;
  int64_t cols;
  CREMA_BOTH float operator()(int64_t row, int64_t col) const { return y[row * cols + col]; }
  CREMA_BOTH void done(int64_t row, float sum) const { total[row] = sum; }
};

/// y /= total of its row.
struct DivideByTotal {
  const float* total;
  float* y;
  int64_t cols;
  CREMA_BOTH void operator()(int64_t i) const { y[i] /= total[i / cols]; }
};

/// y = (1 - |column / f - c|) * (1 - |row / f - c|) within each k x k plane.
struct BilinearFill {
  float* y;
  int64_t k;
  float f, c;
  CREMA_BOTH float weight(int64_t i) const {
    const float distance = static_cast<float>(i) / f - c;
    return distance < 0 ? 1 + distance : 1 - distance;
  }
  CREMA_BOTH void operator()(int64_t i) const { y[i] = weight(i % k) * weight(i / k % k); }
};

}  // namespace CREMA_ISA
}  // namespace crema
