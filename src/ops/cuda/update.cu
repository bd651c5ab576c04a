// The update rules, one kernel over a group's contiguous memory: formulas as Caffe's solvers have
// them, the sources beside each. Rate, gradient scale and Adam's correction are read from the step
// scalars on the device.
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/vector_loop.h"
#include "ops/functors.h"
#include "ops/small_floats.h"

namespace crema::cuda {
namespace {

/// The low-precision copy that is written beside the master.
struct LowCopy {
  Bf16* bf16;
  F16* f16;
  __device__ void put(int64_t i, float w) const {
    if (bf16) bf16[i] = narrow_bf16(w);
    if (f16) f16[i] = narrow_f16(w);
  }
};

/// What to subtract from a weight for gradient g; h and h2 are its histories.
template <Rule kRule>
__device__ float step_of(const UpdateRule& rule, const StepScalars& s, float g, float& h,
                         float& h2) {
  const float rate = s.rate * rule.lr_mult, m = rule.momentum, m2 = rule.momentum2;
  const float rho = rule.rms_decay, delta = rule.delta;
  if constexpr (kRule == Rule::sgd) {  // with momentum (Polyak 1964)
    return h = m * h + rate * g;
  } else if constexpr (kRule == Rule::nesterov) {  // Sutskever et al. 2013
    const float before = h;
    h = m * before + rate * g;
    return (1.0f + m) * h - m * before;
  } else if constexpr (kRule == Rule::adagrad) {  // Duchi et al. 2011
    h += g * g;
    return rate * g / (root_of(h) + delta);
  } else if constexpr (kRule == Rule::rmsprop) {  // Tieleman and Hinton 2012
    h = rho * h + (1.0f - rho) * g * g;
    return rate * g / (root_of(h) + delta);
  } else if constexpr (kRule == Rule::adadelta) {  // Zeiler 2012
    h = m * h + (1.0f - m) * g * g;
    const float d = g * root_of((h2 + delta) / (h + delta));
    h2 = m * h2 + (1.0f - m) * d * d;
    return rate * d;
  } else {  // adam: Kingma and Ba 2015
    h = m * h + (1.0f - m) * g;
    h2 = m2 * h2 + (1.0f - m2) * g * g;
    return rate * s.adam_correction * h / (root_of(h2) + delta);
  }
}

template <Rule kRule>
struct UpdateLoop {
  UpdateRule rule;
  const StepScalars* step;
  const float* grad;
  float *history, *history2, *master;
  LowCopy low;

  __device__ float one(const StepScalars& s, float g, float w, float& h, float& h2) const {
    const float sign = w > 0 ? 1.0f : (w < 0 ? -1.0f : 0.0f);
    const float regular = g * s.grad_scale + rule.decay * (rule.l1 ? sign : w);
    return w - step_of<kRule>(rule, s, regular, h, h2);
  }
  __device__ void single(int64_t i) const {
    float h2 = history_count(kRule) == 2 ? history2[i] : 0.0f;
    const float w = one(*step, grad[i], master[i], history[i], h2);
    if constexpr (history_count(kRule) == 2) history2[i] = h2;
    master[i] = w;
    low.put(i, w);
  }
  __device__ void four(int64_t i) const {
    const StepScalars s = *step;
    const Four g = load4(grad + i);
    Four w = load4(master + i), h = load4(history + i), h2{};
    if constexpr (history_count(kRule) == 2) h2 = load4(history2 + i);
    for (int k = 0; k < 4; ++k) w.v[k] = one(s, g.v[k], w.v[k], h.v[k], h2.v[k]);
    store4(history + i, h);
    if constexpr (history_count(kRule) == 2) store4(history2 + i, h2);
    store4(master + i, w);
    for (int k = 0; k < 4; ++k) low.put(i + k, w.v[k]);
  }
};

}  // namespace

void CudaOps::update(const UpdateRule& rule, CTensor grad, Tensors state, Tensor master,
                     Tensor weight) {
  float* h = state[0].f32();
  float* h2 = state.size() > 1 ? state[1].f32() : h;
  LowCopy low{};
  if (weight.desc.dtype == DType::bf16) low.bf16 = static_cast<Bf16*>(weight.data);
  if (weight.desc.dtype == DType::f16) low.f16 = static_cast<F16*>(weight.data);
  const bool is_aligned = are_aligned(grad.f32(), h, h2, master.f32());
  const auto run = [&]<Rule kRule>() {
    for_elements(UpdateLoop<kRule>{rule, step_scalars(), grad.f32(), h, h2, master.f32(), low},
                 master.count(), is_aligned, stream());
  };
  switch (rule.rule) {
    case Rule::sgd:
      run.template operator()<Rule::sgd>();
      break;
    case Rule::nesterov:
      run.template operator()<Rule::nesterov>();
      break;
    case Rule::adagrad:
      run.template operator()<Rule::adagrad>();
      break;
    case Rule::rmsprop:
      run.template operator()<Rule::rmsprop>();
      break;
    case Rule::adadelta:
      run.template operator()<Rule::adadelta>();
      break;
    case Rule::adam:
      run.template operator()<Rule::adam>();
      break;
  }
  if (weight && weight.desc.dtype == DType::f32 && weight.data != master.data)
    convert(master, weight);
}

}  // namespace crema::cuda
