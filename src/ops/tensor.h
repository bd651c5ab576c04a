// Tensors: a pointer, a shape and how the elements lie. They own nothing; the net's arenas do. A
// tensor without data means "not there" (no bias, gradient not wanted).
#pragma once

#include <span>

#include "base/dtype.h"
#include "base/shape.h"

namespace crema {

struct TensorDesc {
  Shape shape;  // N,C,H,W order, whatever the layout
  DType dtype = DType::f32;
  Layout layout = Layout::nchw;
  int64_t count() const { return shape.count(); }
  size_t bytes() const { return static_cast<size_t>(shape.count()) * size_of(dtype); }
  friend bool operator==(const TensorDesc&, const TensorDesc&) = default;
};

struct CTensor {
  const void* data = nullptr;
  TensorDesc desc;
  explicit operator bool() const { return data != nullptr; }
  int64_t count() const { return desc.count(); }
  const Shape& shape() const { return desc.shape; }
  const float* f32() const { return static_cast<const float*>(data); }
  const uint16_t* bits() const { return static_cast<const uint16_t*>(data); }  // of f16, bf16
};

struct Tensor {
  void* data = nullptr;
  TensorDesc desc;
  explicit operator bool() const { return data != nullptr; }
  operator CTensor() const {
    return {data, desc};
  }  // NOLINT: a tensor may stand wherever it is only read
  int64_t count() const { return desc.count(); }
  const Shape& shape() const { return desc.shape; }
  float* f32() const { return static_cast<float*>(data); }
  uint16_t* bits() const { return static_cast<uint16_t*>(data); }  // of f16, bf16
};

enum class Write : uint8_t {
  overwrite,
  accumulate
};  // dst = r, or dst += r; where dx is dy: overwrite only

/// Where a gradient goes. Empty t: not wanted.
struct Grad {
  Tensor t;
  Write how = Write::overwrite;
  explicit operator bool() const { return static_cast<bool>(t); }
};

using CTensors = std::span<const CTensor>;
using Tensors = std::span<const Tensor>;
using Grads = std::span<const Grad>;

/// Bytes that a plan or a layer wants: scratch during a call (shared by all); saved from forward to
/// its backward; state across iterations (never shared between nets); packed weights in the plan's
/// own order.
struct Needs {
  size_t scratch = 0, saved = 0, state = 0, packed = 0;
};

/// What was asked for by Needs, each 64-byte aligned; u8 tensors, empty where 0 bytes were asked
/// for.
struct Workspace {
  Tensor scratch, saved, state, packed;
};

}  // namespace crema
