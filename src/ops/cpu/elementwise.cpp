// Unary formulas, adding and filling.
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
  unary_loop(isa_, kind, args, x.f32(), y.f32(), y.count());
}

void CpuOps::unary_backward(Unary kind, UnaryArgs args, CTensor x, CTensor y, CTensor dy, Grad dx) {
  if (!dx) return;
  const bool accumulate = dx.how == Write::accumulate;
  parallel_elements(dx.t.count(), cost_of(kind, args), [&](int64_t begin, int64_t end) {
    isa_.unary_backward(kind, args, x ? x.f32() + begin : nullptr, y ? y.f32() + begin : nullptr,
                        dy.f32() + begin, dx.t.f32() + begin, end - begin, accumulate);
  });
}

void CpuOps::add(CTensor src, Tensor dst) { add_loop(isa_, src.f32(), dst.f32(), dst.count()); }

}  // namespace crema
