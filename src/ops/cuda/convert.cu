// From any element type and order in memory to any other: a loop of four elements at a time where
// the order stays, tiles through shared memory where it changes.
#include <cmath>

#include "base/error.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/fill_other.h"
#include "ops/cuda/vector_loop.h"
#include "ops/small_floats.h"

namespace crema::cuda {
namespace {

// ---- Values. What has more digits than a float goes by way of double.

__device__ inline double wide(double x) { return x; }
__device__ inline double wide(int32_t x) { return x; }
__device__ inline float wide(float x) { return x; }
__device__ inline float wide(uint8_t x) { return x; }
__device__ inline float wide(Bf16 x) { return widen(x); }
__device__ inline float wide(F16 x) { return widen(x); }

/// Rounded to the nearest whole number and clipped; 0 for NaN.
template <class To>
__device__ To whole(double v, double low, double high) {
  if (!(v == v)) return 0;
  return static_cast<To>(rint(v < low ? low : (v > high ? high : v)));
}

__device__ inline void narrow(double v, double& y) { y = v; }
__device__ inline void narrow(double v, float& y) { y = static_cast<float>(v); }
__device__ inline void narrow(double v, int32_t& y) {
  y = whole<int32_t>(v, -2147483648.0, 2147483647.0);
}
__device__ inline void narrow(double v, uint8_t& y) { y = whole<uint8_t>(v, 0, 255); }
__device__ inline void narrow(double v, Bf16& y) { y = narrow_bf16(static_cast<float>(v)); }
__device__ inline void narrow(double v, F16& y) { y = narrow_f16(static_cast<float>(v)); }
__device__ inline void narrow(float v, float& y) { y = v; }
__device__ inline void narrow(float v, Bf16& y) { y = narrow_bf16(v); }
__device__ inline void narrow(float v, F16& y) { y = narrow_f16(v); }
__device__ inline void narrow(float v, uint8_t& y) {
  y = v == v ? static_cast<uint8_t>(rintf(v < 0 ? 0.0f : (v > 255 ? 255.0f : v))) : uint8_t{0};
}
__device__ inline void narrow(float v, double& y) { y = static_cast<double>(v); }
__device__ inline void narrow(float v, int32_t& y) { narrow(static_cast<double>(v), y); }

template <class To>
__device__ void put(To value, bool accumulate, To& to) {
  if constexpr (std::is_same_v<To, float>) {
    to = accumulate ? to + value : value;
  } else {
    to = value;
  }
}

// ---- The same order.

template <class T>
struct alignas(4 * sizeof(T)) FourOf {
  T v[4];
};

template <class From, class To>
struct SameOrder {
  const From* src;
  To* dst;
  bool accumulate;
  __device__ void single(int64_t i) const {
    To value;
    narrow(wide(src[i]), value);
    put(value, accumulate, dst[i]);
  }
  __device__ void four(int64_t i) const {
    const auto from = *reinterpret_cast<const FourOf<From>*>(src + i);
    auto& to = *reinterpret_cast<FourOf<To>*>(dst + i);
    FourOf<To> result;
    if (std::is_same_v<To, float> && accumulate) result = to;
    for (int k = 0; k < 4; ++k) {
      To value;
      narrow(wide(from.v[k]), value);
      put(value, accumulate, result.v[k]);
    }
    to = result;
  }
};

// ---- Another order: [batch, rows, cols] to [batch, cols, rows].

constexpr int kTile = 32, kTileRows = 8;

struct Tiles {
  int64_t batch, rows, cols;
  int64_t row_tiles, col_tiles;
};

template <class From, class To>
__global__ void __launch_bounds__(kTile* kTileRows)
    transpose(const From* src, To* dst, Tiles t, bool accumulate) {
  __shared__ To tile[kTile][kTile + 1];
  const int64_t tiles = t.batch * t.row_tiles * t.col_tiles;
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  for (int64_t i = blockIdx.x; i < tiles; i += gridDim.x) {
    const int64_t col0 = i % t.col_tiles * kTile, row0 = i / t.col_tiles % t.row_tiles * kTile;
    const int64_t base = i / t.col_tiles / t.row_tiles * t.rows * t.cols;
    for (int r = y; r < kTile; r += kTileRows) {
      if (row0 + r < t.rows && col0 + x < t.cols) {
        narrow(wide(src[base + (row0 + r) * t.cols + col0 + x]), tile[r][x]);
      }
    }
    __syncthreads();
    for (int c = y; c < kTile; c += kTileRows) {
      if (col0 + c < t.cols && row0 + x < t.rows) {
        put(tile[x][c], accumulate, dst[base + (col0 + c) * t.rows + row0 + x]);
      }
    }
    __syncthreads();
  }
}

/// Pictures as batch x channels x plane.
struct Planes {
  int64_t batch, channels, plane;
};

Planes planes_of(const Shape& shape) {
  if (shape.axes() < 3) return {1, 1, shape.count()};
  return {shape[0], shape[1], shape.count(2)};
}

bool is_same_order(const TensorDesc& a, const TensorDesc& b) {
  const Planes p = planes_of(a.shape);
  return a.layout == b.layout || p.channels == 1 || p.plane == 1;
}

template <class From, class To>
void convert_as(const CTensor& src, const Tensor& dst, bool accumulate, cudaStream_t stream) {
  const auto* from = static_cast<const From*>(src.data);
  auto* to = static_cast<To*>(dst.data);
  if (is_same_order(src.desc, dst.desc)) {
    const bool is_aligned = reinterpret_cast<uintptr_t>(from) % sizeof(FourOf<From>) == 0 &&
                            reinterpret_cast<uintptr_t>(to) % sizeof(FourOf<To>) == 0;
    return for_elements(SameOrder<From, To>{from, to, accumulate}, dst.count(), is_aligned, stream);
  }
  const Planes p = planes_of(dst.shape());
  const bool to_nhwc = dst.desc.layout == Layout::nhwc;
  Tiles t{p.batch, to_nhwc ? p.channels : p.plane, to_nhwc ? p.plane : p.channels, 0, 0};
  t.row_tiles = (t.rows + kTile - 1) / kTile;
  t.col_tiles = (t.cols + kTile - 1) / kTile;
  const unsigned blocks = blocks_for(t.batch * t.row_tiles * t.col_tiles, 1);
  launch(transpose<From, To>, blocks, dim3(kTile, kTileRows), 0, stream, from, to, t, accumulate);
}

/// Calls action with a null pointer of the type.
template <class Action>
void with_type(DType dtype, const Action& action) {
  switch (dtype) {
    case DType::f64:
      return action(static_cast<double*>(nullptr));
    case DType::f32:
      return action(static_cast<float*>(nullptr));
    case DType::f16:
      return action(static_cast<F16*>(nullptr));
    case DType::bf16:
      return action(static_cast<Bf16*>(nullptr));
    case DType::i32:
      return action(static_cast<int32_t*>(nullptr));
    case DType::u8:
      return action(static_cast<uint8_t*>(nullptr));
  }
}

template <class T>
__global__ void fill_kernel(double value, T* dst, int64_t n) {
  T narrowed;
  narrow(value, narrowed);
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    dst[i] = narrowed;
  }
}

}  // namespace

void convert_tensor(const CTensor& src, const Tensor& dst, Write how, cudaStream_t stream) {
  const bool accumulate = how == Write::accumulate;
  require(!accumulate || dst.desc.dtype == DType::f32, "only f32 tensors are added to");
  with_type(src.desc.dtype, [&](auto* from) {
    with_type(dst.desc.dtype, [&](auto* to) {
      convert_as<std::remove_pointer_t<decltype(from)>, std::remove_pointer_t<decltype(to)>>(
          src, dst, accumulate, stream);
    });
  });
}

void fill_other(float value, const Tensor& dst, cudaStream_t stream) {
  with_type(dst.desc.dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    launch(fill_kernel<T>, blocks_for(dst.count(), kVectorThreads), kVectorThreads, 0, stream,
           static_cast<double>(value), static_cast<T*>(dst.data), dst.count());
  });
}

void CudaOps::convert(CTensor src, Tensor dst) {
  if (src.desc.dtype == dst.desc.dtype && is_same_order(src.desc, dst.desc)) {
    return copy(src.data, dst.data, dst.desc.bytes(), stream_);
  }
  convert_tensor(src, dst, Write::overwrite, stream());
}

}  // namespace crema::cuda
