// From any element type and order in memory to any other. Copies, transposes and roundings of f32
// and bf16 are fast, the rest is a loop.
#include <cassert>

#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/parallel.h"
#include "ops/small_floats.h"

namespace crema {
namespace {

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

bool is_f32_or_bf16(const TensorDesc& desc) {
  return desc.dtype == DType::f32 || desc.dtype == DType::bf16;
}

void transpose_planes(const Isa& isa, const Planes& p, const CTensor& src, const Tensor& dst) {
  const bool to_nhwc = dst.desc.layout == Layout::nhwc;
  const bool src_is_low = is_low(src.desc.dtype), dst_is_low = is_low(dst.desc.dtype);
  const auto* from = static_cast<const char*>(src.data);
  auto* to = static_cast<char*>(dst.data);
  const auto from_size = static_cast<int64_t>(size_of(src.desc.dtype));
  const auto to_size = static_cast<int64_t>(size_of(dst.desc.dtype));
  const int64_t rows = to_nhwc ? p.channels : p.plane, cols = to_nhwc ? p.plane : p.channels;
  const int64_t size = rows * cols;
  // One index is a strip of 16 rows or columns, whichever there are more of, of one picture.
  const bool by_cols = cols > rows;
  const int64_t strips = ((by_cols ? cols : rows) + 63) / 64;
  parallel_ranges(p.batch * strips, p.batch * size * 2, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / strips, first = i % strips * 64;
      TransposeArgs args{.src = from + n * size * from_size,
                         .dst = to + n * size * to_size,
                         .rows = rows,
                         .cols = cols,
                         .row_begin = 0,
                         .row_end = rows,
                         .col_begin = 0,
                         .col_end = cols,
                         .src_is_low = src_is_low,
                         .dst_is_low = dst_is_low};
      (by_cols ? args.col_begin : args.row_begin) = first;
      (by_cols ? args.col_end : args.row_end) = std::min(first + 64, by_cols ? cols : rows);
      isa.transpose(args);
    }
  });
}

double load(double x) { return x; }
double load(float x) { return static_cast<double>(x); }
double load(int32_t x) { return x; }
double load(uint8_t x) { return x; }
double load(Bf16 x) { return static_cast<double>(widen(x)); }
double load(F16 x) { return static_cast<double>(widen(x)); }
void store(double v, double& y) { y = v; }
void store(double v, float& y) { y = static_cast<float>(v); }
void store(double v, int32_t& y) { y = static_cast<int32_t>(v); }
void store(double v, uint8_t& y) { y = static_cast<uint8_t>(v < 0 ? 0 : (v > 255 ? 255 : v)); }
void store(double v, Bf16& y) { y = narrow_bf16(static_cast<float>(v)); }
void store(double v, F16& y) { y = narrow_f16(static_cast<float>(v)); }

/// Where element (n, c, p) lies.
int64_t offset_of(const Planes& p, Layout layout, int64_t n, int64_t c, int64_t place) {
  return layout == Layout::nhwc ? (n * p.plane + place) * p.channels + c
                                : (n * p.channels + c) * p.plane + place;
}

template <class From, class To>
void convert_loop(const CTensor& src, const Tensor& dst) {
  const auto* from = static_cast<const From*>(src.data);
  auto* to = static_cast<To*>(dst.data);
  if (is_same_order(src.desc, dst.desc)) {
    parallel_elements(dst.count(), 2, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) store(load(from[i]), to[i]);
    });
    return;
  }
  const Planes p = planes_of(dst.shape());
  parallel_ranges(p.batch * p.channels, dst.count() * 4, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t n = row / p.channels, c = row % p.channels;
      for (int64_t place = 0; place < p.plane; ++place) {
        store(load(from[offset_of(p, src.desc.layout, n, c, place)]),
              to[offset_of(p, dst.desc.layout, n, c, place)]);
      }
    }
  });
}

template <class From>
void convert_from(const CTensor& src, const Tensor& dst) {
  switch (dst.desc.dtype) {
    case DType::f64:
      return convert_loop<From, double>(src, dst);
    case DType::f32:
      return convert_loop<From, float>(src, dst);
    case DType::f16:
      return convert_loop<From, F16>(src, dst);
    case DType::bf16:
      return convert_loop<From, Bf16>(src, dst);
    case DType::i32:
      return convert_loop<From, int32_t>(src, dst);
    case DType::u8:
      return convert_loop<From, uint8_t>(src, dst);
  }
}

void narrow_loop(const Isa& isa, const float* x, uint16_t* y, int64_t n) {
  parallel_elements(n, 1, [=, &isa](int64_t begin, int64_t end) {
    isa.narrow(x + begin, y + begin, end - begin);
  });
}

void widen_loop(const Isa& isa, const uint16_t* x, float* y, int64_t n) {
  parallel_elements(n, 1, [=, &isa](int64_t begin, int64_t end) {
    isa.widen(x + begin, y + begin, end - begin);
  });
}

}  // namespace

void CpuOps::convert(CTensor src, Tensor dst) {
  assert(src.count() == dst.count());
  if (src.desc.dtype == dst.desc.dtype && is_same_order(src.desc, dst.desc)) {
    const auto* from = static_cast<const char*>(src.data);
    auto* to = static_cast<char*>(dst.data);
    const auto bytes = static_cast<int64_t>(dst.desc.bytes());
    if (from == to) return;
    parallel_ranges(bytes, bytes / 4, 4096, [=](int64_t begin, int64_t end) {
      std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
    });
    return;
  }
  if (is_f32_or_bf16(src.desc) && is_f32_or_bf16(dst.desc)) {
    if (!is_same_order(src.desc, dst.desc)) {
      return transpose_planes(isa_, planes_of(dst.shape()), src, dst);
    }
    return is_low(dst.desc.dtype) ? narrow_loop(isa_, src.f32(), dst.bits(), dst.count())
                                  : widen_loop(isa_, src.bits(), dst.f32(), dst.count());
  }
  switch (src.desc.dtype) {
    case DType::f64:
      return convert_from<double>(src, dst);
    case DType::f32:
      return convert_from<float>(src, dst);
    case DType::f16:
      return convert_from<F16>(src, dst);
    case DType::bf16:
      return convert_from<Bf16>(src, dst);
    case DType::i32:
      return convert_from<int32_t>(src, dst);
    case DType::u8:
      return convert_from<uint8_t>(src, dst);
  }
}

void CpuOps::fill(float value, Tensor dst) {
  if (dst.desc.dtype == DType::f32) {
    float* y = dst.f32();
    parallel_elements(dst.count(), 1,
                      [=](int64_t begin, int64_t end) { std::fill(y + begin, y + end, value); });
    return;
  }
  const TensorDesc one{Shape{1}, DType::f32, Layout::nchw};
  const size_t size = size_of(dst.desc.dtype);
  TensorDesc element = one;
  element.dtype = dst.desc.dtype;
  auto* to = static_cast<char*>(dst.data);
  if (dst.count() == 0) return;
  convert({&value, one}, {to, element});
  for (int64_t i = 1; i < dst.count(); ++i)
    std::memcpy(to + static_cast<size_t>(i) * size, to, size);
}

}  // namespace crema
