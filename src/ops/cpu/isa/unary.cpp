// Loops over the elementwise formulas of ops/functors.h.
#include "ops/cpu/isa/loops.h"
#include "ops/unary_formula.h"

namespace crema::CREMA_ISA {
void unary(Unary kind, const UnaryArgs& args, const float* x, float* y, int64_t n) {
  with_formula(kind, args, [&](auto f) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
  });
}

void unary_backward(Unary kind, const UnaryArgs& args, const float* x, const float* y,
                    const float* dy, float* dx, int64_t n, bool accumulate) {
  // Whichever is missing is not read by the formula, or has the same sign (relu).
  if (!x) x = y;
  if (!y) y = x;
  with_formula(kind, args, [&](auto f) {
    if (accumulate) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) dx[i] += dy[i] * f.gradient(x[i], y[i]);
    } else {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * f.gradient(x[i], y[i]);
    }
  });
}

}  // namespace crema::CREMA_ISA
