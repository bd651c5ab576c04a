// Numbers of an update that change with the iteration, beside the rate: NVCaffe's policies for
// momentum and weight decay.
#pragma once

#include "base/error.h"
#include "crema.pb.h"

namespace crema {

/// momentum_policy fixed: momentum; poly: momentum + (max_momentum - momentum) *
/// (iter / max_iter)^momentum_power; opt: (1 - sqrt(rate) / 2)^2, at most max_momentum where given.
float momentum_at(const SolverParameter& param, int iter, float rate);

/// weight_decay_policy fixed: weight_decay; poly: weight_decay + (max_weight_decay - weight_decay)
/// * (iter / max_iter)^weight_decay_power.
float weight_decay_at(const SolverParameter& param, int iter);

/// Adds what is wrong with the policies' fields.
void check_schedules(const SolverParameter& param, ErrorList& errors);

}  // namespace crema
