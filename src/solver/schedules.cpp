// Beyond max_iter a poly policy stays at its end.
#include "solver/schedules.h"

#include <algorithm>
#include <cmath>

namespace crema {
namespace {

double poly(double from, double to, const SolverParameter& param, int iter, double power) {
  const double part = std::min(1.0, static_cast<double>(iter) / std::max(1, param.max_iter()));
  return from + (to - from) * std::pow(part, power);
}

void check_policy(const char* field, const std::string& policy,
                  const std::vector<std::string>& policies, const SolverParameter& param,
                  ErrorList& errors) {
  if (std::find(policies.begin(), policies.end(), policy) == policies.end()) {
    errors.add(Error(str(field, ": there is no policy \"", policy, "\"",
                         did_you_mean(policy, policies), "; there are ", join(policies))));
  } else if (policy == "poly" && param.max_iter() <= 0) {
    errors.add(Error(str("max_iter must be above 0 for ", field, " \"poly\"")));
  }
}

}  // namespace

float momentum_at(const SolverParameter& param, int iter, float rate) {
  if (param.momentum_policy() == "poly") {
    return static_cast<float>(
        poly(param.momentum(), param.max_momentum(), param, iter, param.momentum_power()));
  }
  if (param.momentum_policy() == "opt") {
    const float root = 1 - 0.5F * std::sqrt(std::max(0.0F, rate));
    const float momentum = root * root;
    return param.has_max_momentum() ? std::min(momentum, param.max_momentum()) : momentum;
  }
  return param.momentum();
}

float weight_decay_at(const SolverParameter& param, int iter) {
  if (param.weight_decay_policy() != "poly") return param.weight_decay();
  return static_cast<float>(poly(param.weight_decay(), param.max_weight_decay(), param, iter,
                                 param.weight_decay_power()));
}

void check_schedules(const SolverParameter& param, ErrorList& errors) {
  check_policy("momentum_policy", param.momentum_policy(), {"fixed", "poly", "opt"}, param, errors);
  check_policy("weight_decay_policy", param.weight_decay_policy(), {"fixed", "poly"}, param,
               errors);
  if (param.max_momentum() < 0 || param.max_momentum() >= 1) {
    errors.add(Error(str("max_momentum must be in [0, 1), not ", param.max_momentum())));
  }
}

}  // namespace crema
