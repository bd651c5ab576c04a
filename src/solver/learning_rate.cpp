// Policies are rows of a table: name, formula, the fields that it cannot do without.
#include "solver/learning_rate.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "base/error.h"

namespace crema {
namespace {

/// Part of the way to max_iter that is left, 0 beyond it. BVLC: poly raises a negative number to a
/// power there.
double left(const SolverParameter& param, int iter) {
  return std::max(0.0, 1.0 - static_cast<double>(iter) / param.max_iter());
}

struct Policy {
  const char* name;
  std::vector<const char*> needs;
  /// The factor of base_lr at an iteration; multistep has its own.
  std::function<double(const SolverParameter&, int)> factor;
};

const std::vector<Policy>& policies() {
  using P = SolverParameter;
  static const std::vector<Policy> table = {
      {"fixed", {}, [](const P&, int) { return 1.0; }},
      {"step",
       {"gamma", "stepsize"},
       [](const P& p, int k) { return std::pow(p.gamma(), k / p.stepsize()); }},
      {"exp", {"gamma"}, [](const P& p, int k) { return std::pow(p.gamma(), k); }},
      {"inv",
       {"gamma", "power"},
       [](const P& p, int k) {
         return std::pow(1.0 + p.gamma() * static_cast<double>(k), -p.power());
       }},
      {"multistep", {"gamma", "stepvalue"}, nullptr},
      {"poly",
       {"power", "max_iter"},
       [](const P& p, int k) { return std::pow(left(p, k), p.power()); }},
      {"sigmoid",
       {"gamma", "stepsize"},
       [](const P& p, int k) {
         return 1.0 / (1.0 + std::exp(-p.gamma() * (static_cast<double>(k) - p.stepsize())));
       }},
      {"cosine",
       {"max_iter"},
       [](const P& p, int k) {
         return (1.0 + std::cos(std::numbers::pi * (1.0 - left(p, k)))) / 2;
       }},
  };
  return table;
}

const Policy* find_policy(const std::string& name) {
  for (const Policy& policy : policies()) {
    if (name == policy.name) return &policy;
  }
  return nullptr;
}

std::string unknown_policy(const std::string& name) {
  std::vector<std::string> names;
  for (const Policy& policy : policies()) names.emplace_back(policy.name);
  if (name.empty()) return str("lr_policy is missing: one of ", join(names));
  const std::string fork = name == "plateau"      ? " (SSD's and Intel's Caffe have it)"
                           : name == "multifixed" ? " (Intel's Caffe has it)"
                                                  : "";
  return str("lr_policy: there is no policy \"", name, '"',
             fork.empty() ? did_you_mean(name, names) : fork, "; there are ", join(names));
}

bool has_field(const SolverParameter& param, const std::string& name) {
  const auto* field = param.GetDescriptor()->FindFieldByName(name);
  const auto* reflection = param.GetReflection();
  return field->is_repeated() ? reflection->FieldSize(param, field) > 0
                              : reflection->HasField(param, field);
}

void check_policy(const SolverParameter& param, ErrorList& errors) {
  const Policy* policy = find_policy(param.lr_policy());
  if (policy == nullptr) {
    errors.add(Error(unknown_policy(param.lr_policy())));
    return;
  }
  for (const std::string name : policy->needs) {
    if (!has_field(param, name)) {
      errors.add(Error(str(name, " is missing: lr_policy \"", policy->name, "\" needs it")));
    } else if (name == "stepsize" && param.lr_policy() == "step" && param.stepsize() <= 0) {
      errors.add(Error(str("stepsize must be above 0, not ", param.stepsize())));
    } else if (name == "max_iter" && param.max_iter() <= 0) {
      errors.add(Error(str("max_iter must be above 0 for lr_policy \"", policy->name, "\"")));
    }
  }
}

}  // namespace

LearningRate::LearningRate(const SolverParameter& param, bool log) : param_(param), log_(log) {
  for (const char* nets : {"net_param", "train_net_param", "test_net_param"}) {
    param_.GetReflection()->ClearField(&param_, param_.GetDescriptor()->FindFieldByName(nets));
  }
  ErrorList errors;
  if (!param.has_base_lr()) errors.add(Error("base_lr is missing"));
  if (!std::isfinite(param.base_lr()))
    errors.add(Error(str("base_lr must be finite, not ", param.base_lr())));
  if (param.warmup_iter() < 0) {
    errors.add(Error(str("warmup_iter must not be negative: ", param.warmup_iter())));
  }
  if (!(param.warmup_start_lr() >= 0)) {
    errors.add(Error(str("warmup_start_lr must not be negative: ", param.warmup_start_lr())));
  }
  check_policy(param, errors);
  if (param.rampup_interval() < 0) {
    errors.add(Error(str("rampup_interval must not be negative: ", param.rampup_interval())));
  }
  if (param.rampup_interval() > 0 && param.warmup_iter() > 0) {
    errors.add(Error("rampup_interval and warmup_iter both raise the rate at the start: give one"));
  }
  if (!(param.min_lr() >= 0)) {
    errors.add(Error(str("min_lr must not be negative: ", param.min_lr())));
  }
  if (!std::is_sorted(param.stepvalue().begin(), param.stepvalue().end())) {
    errors.add(Error(str("stepvalue must ascend, not ", join(param.stepvalue()))));
  }
  errors.throw_if_any();
}

int LearningRate::steps_passed(int iter) const {
  return static_cast<int>(
      std::upper_bound(param_.stepvalue().begin(), param_.stepvalue().end(), iter) -
      param_.stepvalue().begin());
}

double LearningRate::policy_value(int iter) const {
  const Policy* policy = find_policy(param_.lr_policy());
  const double factor = policy->factor
                            ? policy->factor(param_, iter)
                            : std::pow(static_cast<double>(param_.gamma()), steps_passed(iter));
  const double base = param_.base_lr(), lowest = param_.min_lr();
  if (param_.lr_policy() == "poly") return (base - lowest) * factor + lowest;
  return std::max(base * factor, lowest);
}

float LearningRate::at(int iter) {
  // BVLC: one step is caught up with per iteration after a resume, and none is ever taken back.
  if (param_.lr_policy() == "multistep" && steps_passed(iter) != current_step_) {
    current_step_ = steps_passed(iter);
    LOG_IF(INFO, log_) << "MultiStep Status: Iteration " << iter << ", step = " << current_step_;
  }
  if (iter < param_.rampup_interval()) {
    const double part = static_cast<double>(iter) / param_.rampup_interval();
    const double start = param_.rampup_lr();
    return static_cast<float>(start + (param_.base_lr() - start) * part * part);
  }
  const double warm =
      iter < param_.warmup_iter() ? static_cast<double>(iter) / param_.warmup_iter() : 1.0;
  const double start = param_.warmup_start_lr();
  return static_cast<float>(start * (1 - warm) + policy_value(iter) * warm);
}

}  // namespace crema
