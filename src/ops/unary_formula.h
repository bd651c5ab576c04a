// Which formula of functors.h computes a Unary; for every device and instruction set.
#pragma once

#include "ops/functors.h"
#include "ops/ops.h"

namespace crema::CREMA_ISA {

/// Calls action(functor) with the functor that computes kind.
template <class Action>
__attribute__((always_inline)) inline void with_formula(Unary kind, const UnaryArgs& g,
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

}  // namespace crema::CREMA_ISA
