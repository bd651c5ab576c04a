// bf16 and f16 as bit patterns, rounded to nearest even, the same on every device.
#pragma once

#include <cstdint>

#include "ops/functors.h"

namespace crema::CREMA_ISA {

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

CREMA_BOTH inline float widen(Bf16 x) { return float_of_bits(static_cast<uint32_t>(x.bits) << 16); }

CREMA_BOTH inline Bf16 narrow_bf16(float x) {
  const uint32_t bits = bits_of_float(x);
  if (x != x) return {static_cast<uint16_t>(bits >> 16 | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16)};
}

CREMA_BOTH inline float widen(F16 x) {
  const uint32_t sign = (x.bits & 0x8000u) << 16, rest = x.bits & 0x7FFFu;
  // Denormals come out right too: the product by 2^112 renormalises them.
  const float value = float_of_bits(rest << 13) * 0x1p112f;
  const uint32_t bits = rest >= 0x7C00u ? rest << 13 | 0x7F800000u : bits_of_float(value);
  return float_of_bits(bits | sign);
}

CREMA_BOTH inline F16 narrow_f16(float x) {
  const uint32_t bits = bits_of_float(x), sign = bits >> 16 & 0x8000u, rest = bits & 0x7FFFFFFFu;
  if (rest > 0x7F800000u) return {static_cast<uint16_t>(sign | 0x7E00u)};
  if (rest >= 0x477FF000u) return {static_cast<uint16_t>(sign | 0x7C00u)};
  if (rest < 0x38800000u) {  // denormal: the addition of 0.5 rounds it into the low bits
    return {
        static_cast<uint16_t>(sign | (bits_of_float(float_of_bits(rest) + 0.5f) - 0x3F000000u))};
  }
  return {static_cast<uint16_t>(sign | (rest - 0x38000000u + 0xFFFu + (rest >> 13 & 1u)) >> 13)};
}

// For loops over elements of any of these types.
CREMA_BOTH inline float widen(float x) { return x; }
CREMA_BOTH inline void narrow_to(float v, float& y) { y = v; }
CREMA_BOTH inline void narrow_to(float v, Bf16& y) { y = narrow_bf16(v); }
CREMA_BOTH inline void narrow_to(float v, F16& y) { y = narrow_f16(v); }

}  // namespace crema::CREMA_ISA
