// What every backend shares: activations in terms of unary formulas.
#include "ops/ops.h"

namespace crema {

Unary unary_of(const Act& act) {
  switch (act.kind) {
    case ActKind::relu6:
      return Unary::relu6;
    case ActKind::elu:
      return Unary::elu;
    default:
      return Unary::relu;
  }
}

UnaryArgs unary_args_of(const Act& act) { return {.a = act.slope}; }

void act_backward(Ops& ops, const Act& act, CTensor y, CTensor dy, Tensor dx) {
  if (act.kind == ActKind::none) {
    if (dx.data != dy.data) ops.convert(dy, dx);
    return;
  }
  ops.unary_backward(unary_of(act), unary_args_of(act), {}, y, dy, {dx, Write::overwrite});
}

}  // namespace crema
