// One step of a solver's rule over a group's memory.
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/parallel.h"

namespace crema {

void CpuOps::update(const UpdateRule& rule, CTensor grad, Tensors state, Tensor master,
                    Tensor weight) {
  const UpdateArgs args{.grad = grad.f32(),
                        .history = {state.empty() ? nullptr : state[0].f32(),
                                    state.size() > 1 ? state[1].f32() : nullptr},
                        .master = master.f32(),
                        .rate = step_.rate,
                        .grad_scale = step_.grad_scale,
                        .adam_correction = step_.adam_correction};
  parallel_elements(master.count(), 2,
                    [&](int64_t begin, int64_t end) { isa_.update(rule, args, begin, end); });
  if (weight && weight.data != master.data) convert(master, weight);
}

}  // namespace crema
