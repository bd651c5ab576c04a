// The activation that a plan applies to its y, for kernels that compute y themselves.
#pragma once

#include "ops/functors.h"
#include "ops/ops.h"

namespace crema::cuda {

CREMA_BOTH inline float activate(const Act& act, float x) {
  switch (act.kind) {
    case ActKind::none:
      return x;
    case ActKind::relu:
      return act.slope == 0 ? PlainReluOf{}(x) : ReluOf{act.slope}(x);
    case ActKind::relu6:
      return Relu6Of{}(x);
    case ActKind::elu:
      return EluOf{act.slope}(x);
  }
  return x;
}

/// act'(x) from y = act(x).
CREMA_BOTH inline float activation_slope(const Act& act, float y) {
  switch (act.kind) {
    case ActKind::none:
      return 1.0f;
    case ActKind::relu:
      return act.slope == 0 ? PlainReluOf{}.gradient(y, y) : ReluOf{act.slope}.gradient(y, y);
    case ActKind::relu6:
      return Relu6Of{}.gradient(y, y);
    case ActKind::elu:
      return EluOf{act.slope}.gradient(y, y);
  }
  return 1.0f;
}

}  // namespace crema::cuda
