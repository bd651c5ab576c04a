// Unary formulas, adding and filling; bf16 by way of f32.
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/parallel.h"

namespace crema {
namespace {

/// Of one element, in elements of a plain copy.
int64_t cost_of(Unary kind, const UnaryArgs& args) {
  switch (kind) {
    case Unary::elu:
    case Unary::sigmoid:
    case Unary::tanh:
    case Unary::swish:
    case Unary::exp:
    case Unary::log:
      return 4;
    case Unary::bnll:
      return 8;
    case Unary::power:
      return args.c == 0 || args.c == 1 || args.c == 2 || args.c == .5f || args.c == -1 ? 1 : 32;
    default:
      return 1;
  }
}

/// bf16 numbers are computed with a block at a time, as f32 in the first cache.
constexpr int64_t kBlock = 512;
using Block = float[kBlock];

/// Calls f(place, count) for blocks that cover [0, n).
template <class F>
void in_blocks(int64_t n, int64_t cost, const F& f) {
  parallel_elements(n, cost, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += kBlock) f(at, std::min(kBlock, end - at));
  });
}

}  // namespace

void unary_loop(const Isa& isa, Unary kind, const UnaryArgs& args, const float* x, float* y,
                int64_t n) {
  parallel_elements(n, cost_of(kind, args), [&](int64_t begin, int64_t end) {
    isa.unary(kind, args, x + begin, y + begin, end - begin);
  });
}

void add_loop(const Isa& isa, const float* src, float* dst, int64_t n) {
  parallel_elements(
      n, 1, [&](int64_t begin, int64_t end) { isa.add(src + begin, dst + begin, end - begin); });
}

void CpuOps::unary(Unary kind, UnaryArgs args, CTensor x, Tensor y) {
  if (x.desc.dtype == DType::f32) {
    return unary_loop(isa_, kind, args, x.f32(), y.f32(), y.count());
  }
  in_blocks(y.count(), cost_of(kind, args), [&](int64_t at, int64_t n) {
    Block values;
    isa_.widen(x.bits() + at, values, n);
    isa_.unary(kind, args, values, values, n);
    isa_.narrow(values, y.bits() + at, n);
  });
}

void CpuOps::unary_backward(Unary kind, UnaryArgs args, CTensor x, CTensor y, CTensor dy, Grad dx) {
  if (!dx) return;
  const bool accumulate = dx.how == Write::accumulate;
  if (is_low(dx.t.desc.dtype)) {
    return in_blocks(dx.t.count(), cost_of(kind, args), [&](int64_t at, int64_t n) {
      Block in, out, slope, result;
      if (x) isa_.widen(x.bits() + at, in, n);
      if (y) isa_.widen(y.bits() + at, out, n);
      isa_.widen(dy.bits() + at, slope, n);
      if (accumulate) isa_.widen(dx.t.bits() + at, result, n);
      isa_.unary_backward(kind, args, x ? in : nullptr, y ? out : nullptr, slope, result, n,
                          accumulate);
      isa_.narrow(result, dx.t.bits() + at, n);
    });
  }
  parallel_elements(dx.t.count(), cost_of(kind, args), [&](int64_t begin, int64_t end) {
    isa_.unary_backward(kind, args, x ? x.f32() + begin : nullptr, y ? y.f32() + begin : nullptr,
                        dy.f32() + begin, dx.t.f32() + begin, end - begin, accumulate);
  });
}

void CpuOps::add(CTensor src, Tensor dst) {
  if (dst.desc.dtype == DType::f32) return add_loop(isa_, src.f32(), dst.f32(), dst.count());
  in_blocks(dst.count(), 1, [&](int64_t at, int64_t n) {
    Block a, b;
    isa_.widen(src.bits() + at, a, n);
    isa_.widen(dst.bits() + at, b, n);
    isa_.add(a, b, n);
    isa_.narrow(b, dst.bits() + at, n);
  });
}

}  // namespace crema
