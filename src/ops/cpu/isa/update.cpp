// The update rules, each one pass over a group's memory: formulas as Caffe's solvers have them, the
// sources beside each.
#include "ops/cpu/isa/loops.h"
#include "ops/functors.h"

namespace crema::CREMA_ISA {
namespace {

/// Calls step(i, g) with the regularised gradient g and takes its result from the weight.
template <class Step>
__attribute__((always_inline)) inline void each(const UpdateRule& rule, const UpdateArgs& args,
                                                int64_t begin, int64_t end, const Step& step) {
  const float* grad = args.grad;
  float* w = args.master;
  const float scale = args.grad_scale, decay = rule.decay;
  if (rule.l1) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const float sign = w[i] > 0 ? 1.0f : (w[i] < 0 ? -1.0f : 0.0f);
      w[i] -= step(i, grad[i] * scale + decay * sign);
    }
  } else {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) w[i] -= step(i, grad[i] * scale + decay * w[i]);
  }
}

}  // namespace

void update(const UpdateRule& rule, const UpdateArgs& args, int64_t begin, int64_t end) {
  float* h = args.history[0];
  float* h2 = args.history[1];
  const float rate = args.rate * rule.lr_mult, m = rule.momentum, m2 = rule.momentum2;
  const float rho = rule.rms_decay, delta = rule.delta;
  switch (rule.rule) {
    case Rule::sgd:  // with momentum (Polyak 1964)
      return each(rule, args, begin, end,
                  [=](int64_t i, float g) { return h[i] = m * h[i] + rate * g; });
    case Rule::nesterov:  // Sutskever et al. 2013
      return each(rule, args, begin, end, [=](int64_t i, float g) {
        const float before = h[i];
        h[i] = m * before + rate * g;
        return (1.0f + m) * h[i] - m * before;
      });
    case Rule::adagrad:  // Duchi et al. 2011
      return each(rule, args, begin, end, [=](int64_t i, float g) {
        h[i] += g * g;
        return rate * g / (root_of(h[i]) + delta);
      });
    case Rule::rmsprop:  // Tieleman and Hinton 2012
      return each(rule, args, begin, end, [=](int64_t i, float g) {
        h[i] = rho * h[i] + (1.0f - rho) * g * g;
        return rate * g / (root_of(h[i]) + delta);
      });
    case Rule::adadelta:  // Zeiler 2012
      return each(rule, args, begin, end, [=](int64_t i, float g) {
        h[i] = m * h[i] + (1.0f - m) * g * g;
        const float d = g * root_of((h2[i] + delta) / (h[i] + delta));
        h2[i] = m * h2[i] + (1.0f - m) * d * d;
        return rate * d;
      });
    case Rule::adam: {  // Kingma and Ba 2015
      const float corrected = rate * args.adam_correction;
      return each(rule, args, begin, end, [=](int64_t i, float g) {
        h[i] = m * h[i] + (1.0f - m) * g;
        h2[i] = m2 * h2[i] + (1.0f - m2) * g * g;
        return corrected * h[i] / (root_of(h2[i]) + delta);
      });
    }
  }
}

}  // namespace crema::CREMA_ISA
