// Element types of the stand-ins for the libraries: loads and stores as float, rounding to TF32.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace crema::cuda_sim {

enum class Number : uint8_t { f32, f16, bf16, none };

inline size_t size_of(Number type) { return type == Number::f32 ? 4 : 2; }

inline float load(Number type, const void* base, int64_t index) {
  if (type == Number::f32) return static_cast<const float*>(base)[index];
  if (type == Number::f16) return __half2float(static_cast<const __half*>(base)[index]);
  return __bfloat162float(static_cast<const __nv_bfloat16*>(base)[index]);
}

inline void store(Number type, void* base, int64_t index, float value) {
  if (type == Number::f32) {
    static_cast<float*>(base)[index] = value;
  } else if (type == Number::f16) {
    static_cast<__half*>(base)[index] = __float2half_rn(value);
  } else {
    static_cast<__nv_bfloat16*>(base)[index] = __float2bfloat16_rn(value);
  }
}

/// Ten bits of mantissa, as tensor cores read f32: to nearest, ties to even.
inline float round_to_tf32(float value) {
  if (!std::isfinite(value)) return value;
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  bits += 0xfffu + (bits >> 13 & 1u);
  bits &= ~0x1fffu;
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

}  // namespace crema::cuda_sim
