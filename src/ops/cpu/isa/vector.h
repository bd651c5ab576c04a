// The vectors of an instruction set, and memory at any address to and from them.
#pragma once

#include "ops/cpu/isa/isa.h"

namespace crema::CREMA_ISA {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
/// Lanes of 32 bits.
constexpr int kWidth = kVectorBytes / 4;

using Vector __attribute__((vector_size(kVectorBytes))) = float;
using IntVector __attribute__((vector_size(kVectorBytes))) = int32_t;
using Words __attribute__((vector_size(kVectorBytes))) = uint32_t;
using Wide __attribute__((vector_size(kVectorBytes))) = uint64_t;

template <class V = Vector>
__attribute__((always_inline)) inline V load(const void* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}
template <class V>
__attribute__((always_inline)) inline void store(void* to, V v) {
  __builtin_memcpy(to, &v, sizeof(v));
}

inline int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace crema::CREMA_ISA
