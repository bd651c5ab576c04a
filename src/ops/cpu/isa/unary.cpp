// Loops over the elementwise formulas of ops/functors.h.
#include "ops/cpu/isa/loops.h"
#include "ops/functors.h"

namespace crema::CREMA_ISA {
namespace {

/// Calls action(functor) with the functor that computes kind.
template <class Action>
__attribute__((always_inline)) inline void with_functor(Unary kind, const UnaryArgs& g,
                                                        const Action& action) {
  switch (kind) {
    case Unary::relu:
      return g.a == 0 ? action(PlainReluOf{}) : action(ReluOf{g.a});
    case Unary::relu6:
      return action(Relu6Of{});
    case Unary::elu:
      return action(EluOf{g.a});
    case Unary::sigmoid:
      return action(SigmoidOf{});
    case Unary::tanh:
      return action(TanhOf{});
    case Unary::swish:
      return action(SwishOf{g.a});
    case Unary::bnll:
      return action(BnllOf{});
    case Unary::absval:
      return action(AbsOf{});
    case Unary::exp:
      return action(ExpOf{g.a, g.b});
    case Unary::log:
      return action(LogOf{g.a, g.b, g.c});
    case Unary::clip:
      return action(ClipOf{g.a, g.b});
    case Unary::threshold:
      return action(ThresholdOf{g.a});
    case Unary::power:
      break;
  }
  if (g.c == 0) return action(PowerZeroOf{});
  if (g.c == 1) return action(LinearOf{g.a, g.b});
  if (g.c == 2) return action(SquareOf{g.a, g.b});
  if (g.c == 0.5f) return action(RootOf{g.a, g.b});
  if (g.c == -1) return action(ReciprocalOf{g.a, g.b});
  action(PowerOf{g.a, g.b, g.c});
}

}  // namespace

void unary(Unary kind, const UnaryArgs& args, const float* x, float* y, int64_t n) {
  with_functor(kind, args, [&](auto f) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
  });
}

void unary_backward(Unary kind, const UnaryArgs& args, const float* x, const float* y,
                    const float* dy, float* dx, int64_t n, bool accumulate) {
  // Whichever is missing is not read by the formula, or has the same sign (relu).
  if (!x) x = y;
  if (!y) y = x;
  with_functor(kind, args, [&](auto f) {
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
