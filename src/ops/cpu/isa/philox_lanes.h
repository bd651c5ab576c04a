// Philox blocks (base/philox.h) for a vector of counters at a time, bit for bit the same words.
#pragma once

#include "ops/cpu/isa/vector.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace crema::CREMA_ISA {

constexpr int kWideLanes = kVectorBytes / 8;

/// Of the low halves; vectors know no such product, only one of whole numbers, which is slow.
__attribute__((always_inline)) inline Wide product(Wide a, Wide b) {
#if defined(__AVX512F__)
  // Masked with ones: GCC 12 warns of the plain form.
  return reinterpret_cast<Wide>(
      _mm512_maskz_mul_epu32(0xFF, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<Wide>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__SSE2__)
  return reinterpret_cast<Wide>(
      _mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  return (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu);
#endif
}

/// One block per lane, words two and two: low and high half of a lane.
struct WideBlocks {
  Wide first, second;
};

__attribute__((always_inline)) inline WideBlocks philox_lanes(uint64_t key, Wide counter_low,
                                                              uint64_t counter_high) {
  // Only low halves count, whatever the high ones hold.
  Wide c0 = counter_low, c1 = counter_low >> 32;
  Wide c2 = Wide{} + counter_high, c3 = Wide{} + (counter_high >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const Wide p0 = product(c0, Wide{} + 0xD2511F53u), p1 = product(c2, Wide{} + 0xCD9E8D57u);
    c0 = (p1 >> 32) ^ c1 ^ uint64_t { k0 };
    c2 = (p0 >> 32) ^ c3 ^ uint64_t { k1 };
    c1 = p1;
    c3 = p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {(c0 & 0xFFFFFFFFu) | c1 << 32, (c2 & 0xFFFFFFFFu) | c3 << 32};
}

}  // namespace crema::CREMA_ISA
