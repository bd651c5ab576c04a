// scale^-beta for local response normalisation: each usual exponent has a short way.
#pragma once

#include "ops/functors.h"

namespace crema::CREMA_ISA {

enum class Beta { three_quarters, half, one, any };

struct Shrink {
  float power;       // scale^-beta
  float power_over;  // scale^-beta / scale
};

/// For scale > 0, relative error below 5e-7. The fourth root's inverse comes from a guess by the
/// exponent and three Newton steps: on many processors that is far faster than square roots. Where
/// scale overflowed, the greatest float stands for it.
template <Beta kBeta>
__attribute__((always_inline)) inline Shrink shrink_of(float scale, float beta) {
  if constexpr (kBeta == Beta::three_quarters) {
    scale = scale > 3.402823466e38f ? 3.402823466e38f : scale;
    float q = float_of_bits(0x4F58CD20u - (bits_of_float(scale) >> 2));
    for (int step = 0; step < 3; ++step) {
      const float q2 = q * q;
      q = q * (1.25f - 0.25f * scale * (q2 * q2));
    }
    const float q3 = q * q * q;
    return {q3, q3 * (q3 * q)};
  } else if constexpr (kBeta == Beta::half) {
    const float p = 1.0f / root_of(scale);
    return {p, p * p * p};
  } else if constexpr (kBeta == Beta::one) {
    const float p = 1.0f / scale;
    return {p, p * p};
  } else {
    const float p = exp_of(-beta * log_of(scale));
    return {p, p / scale};
  }
}

/// Calls loop.operator()<kind of beta>().
template <class Loop>
__attribute__((always_inline)) inline void for_beta(float beta, const Loop& loop) {
  if (beta == 0.75f) return loop.template operator()<Beta::three_quarters>();
  if (beta == 0.5f) return loop.template operator()<Beta::half>();
  if (beta == 1.0f) return loop.template operator()<Beta::one>();
  loop.template operator()<Beta::any>();
}

}  // namespace crema::CREMA_ISA
