// Element types and memory orders of tensors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace crema {

enum class DType : uint8_t { f64, f32, f16, bf16, i32, u8 };
/// Order in memory of tensors with a channel axis: Shape is N,C,spatial... in both; nhwc keeps
/// channels innermost.
enum class Layout : uint8_t { nchw, nhwc };

constexpr size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

}  // namespace crema
