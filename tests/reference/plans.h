// The oracle's plans, one file per family.
#pragma once

#include "ops/ops.h"

namespace crema::reference {

std::unique_ptr<ConvPlan> make_plan(const ConvDesc& desc);
std::unique_ptr<LinearPlan> make_plan(const LinearDesc& desc);
/// step: where the forward count is read, for stochastic pooling.
std::unique_ptr<PoolPlan> make_plan(const PoolDesc& desc, const StepScalars* step);
std::unique_ptr<NormPlan> make_plan(const NormDesc& desc);
std::unique_ptr<LrnPlan> make_plan(const LrnDesc& desc);
std::unique_ptr<SoftmaxPlan> make_plan(const SoftmaxDesc& desc);

/// act(x), and its derivative written in terms of y = act(x).
double activate(const Act& act, double x);
double activation_slope(const Act& act, double y);

/// The formulas of Unary.
double unary_value(Unary kind, const UnaryArgs& args, double x);
double unary_slope(Unary kind, const UnaryArgs& args, double x);
/// The derivative where only y is known (relu, relu6, elu, sigmoid, tanh, exp).
double unary_slope_from_y(Unary kind, const UnaryArgs& args, double y);

void update(const UpdateRule& rule, const StepScalars& step, CTensor grad, Tensors state,
            Tensor master, Tensor weight);

/// One element, whatever its dtype, as a double; and back, rounded to nearest even (integers:
/// clamped).
double load(CTensor tensor, int64_t offset);
void store(double value, Tensor tensor, int64_t offset);

}  // namespace crema::reference
