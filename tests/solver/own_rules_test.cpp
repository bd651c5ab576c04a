// Solver types of our own and NVCaffe's fields, on a net of three numbers, against the formulas in
// double: loss (w1 x1 + w2 x2 + b - y)^2 / 2, so dw = x r, db = r with r = w x + b - y.
#include <gtest/gtest.h>

#include <cmath>

#include "base/str.h"
#include "solver/schedules.h"
#include "solver/solver_harness.h"

namespace crema {
namespace {

constexpr const char* kNet =
    "net_param { name: 'three' "
    "layer { name: 'x' type: 'DummyData' top: 'x1' top: 'x2' top: 'y' dummy_data_param { "
    "shape { dim: 1 dim: 1 } data_filler { value: 2 } data_filler { value: -1 } "
    "data_filler { value: 2 } } } "
    "layer { name: 'x12' type: 'Concat' bottom: 'x1' bottom: 'x2' top: 'x' } "
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip' param { lr_mult: 1 } "
    "param { lr_mult: 2 decay_mult: 0 } inner_product_param { num_output: 1 "
    "weight_filler { value: 0.5 } bias_filler { value: 0.5 } } } "
    "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'y' top: 'loss' } } "
    "max_iter: 8 snapshot_after_train: false base_lr: 0.1 lr_policy: 'fixed' ";

using Numbers = std::vector<double>;

/// One parameter: its numbers, multipliers and two histories.
struct Param {
  Numbers w, h, u;
  double rate_mult, decay_mult;
  bool is_matrix;
};

double norm(const Numbers& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

constexpr double kRate = 0.1, kDecay = 0.05, kMomentum = 0.9, kMomentum2 = 0.99, kEta = 0.02;

/// v = momentum v + rate (g + decay w); w -= v.
void sgd(Param& p, const Numbers& g, double rate, double momentum, double decay) {
  for (size_t i = 0; i < g.size(); ++i) {
    p.h[i] = momentum * p.h[i] + rate * (g[i] + decay * p.w[i]);
    p.w[i] -= p.h[i];
  }
}

/// Adam's direction.
Numbers adam(Param& p, const Numbers& g, int t) {
  Numbers out;
  for (size_t i = 0; i < g.size(); ++i) {
    p.h[i] = kMomentum * p.h[i] + (1 - kMomentum) * g[i];
    p.u[i] = kMomentum2 * p.u[i] + (1 - kMomentum2) * g[i] * g[i];
    out.push_back(std::sqrt(1 - std::pow(kMomentum2, t)) / (1 - std::pow(kMomentum, t)) * p.h[i] /
                  (std::sqrt(p.u[i]) + 1e-8));
  }
  return out;
}

void adamw(Param& p, const Numbers& g, int t) {
  const Numbers direction = adam(p, g, t);
  const double rate = kRate * p.rate_mult;
  for (size_t i = 0; i < g.size(); ++i) {
    p.w[i] -= rate * (direction[i] + kDecay * p.decay_mult * p.w[i]);
  }
}

void lamb(Param& p, const Numbers& g, int t) {
  Numbers step = adam(p, g, t);
  for (size_t i = 0; i < g.size(); ++i) step[i] += kDecay * p.decay_mult * p.w[i];
  const double ratio = p.is_matrix ? norm(p.w) / norm(step) : 1;
  for (size_t i = 0; i < g.size(); ++i) p.w[i] -= kRate * p.rate_mult * ratio * step[i];
}

void lars(Param& p, const Numbers& g, int) {
  const double decay = kDecay * p.decay_mult;
  const double ratio = p.is_matrix ? kEta * norm(p.w) / (norm(g) + decay * norm(p.w)) : 1;
  sgd(p, g, kRate * p.rate_mult * ratio, kMomentum, decay);
}

void larc_scale(Param& p, const Numbers& g, int) {
  const double ratio = (1 - kMomentum) * kEta * norm(p.w) / norm(g);
  sgd(p, g, kRate * ratio, kMomentum, kDecay * p.decay_mult);
}

void larc_clip(Param& p, const Numbers& g, int) {
  const double ratio = (1 - kMomentum) * 20 * norm(p.w) / norm(g);
  sgd(p, g, std::min(kRate, ratio), kMomentum, kDecay * p.decay_mult);
}

/// momentum 0.5 to 0.9 and decay 0.05 to 0.2 over 8 iterations, squared.
void poly_policies(Param& p, const Numbers& g, int t) {
  const double part = std::pow((t - 1) / 8.0, 2);
  sgd(p, g, kRate * p.rate_mult, 0.5 + 0.4 * part, (0.05 + 0.15 * part) * p.decay_mult);
}

struct RuleCase {
  const char* name;
  const char* solver;
  void (*step)(Param&, const Numbers&, int);
};

void PrintTo(const RuleCase& row, std::ostream* out) { *out << row.name; }

class OwnRules : public testing::TestWithParam<RuleCase> {};

TEST_P(OwnRules, FollowTheFormula) {
  const WorkFolder folder;
  const auto solver = make_solver(str(kNet, "weight_decay: 0.05 | ", GetParam().solver));
  Param w{{0.5, 0.5}, {0, 0}, {0, 0}, 1, 1, true}, b{{0.5}, {0}, {0}, 2, 0, false};
  for (int t = 1; t <= 6; ++t) {
    solver->step(1);
    const double r = 2 * w.w[0] - w.w[1] + b.w[0] - 2;
    GetParam().step(w, {2 * r, -r}, t);
    GetParam().step(b, {r}, t);
    const std::vector<float> params = all_params(*solver);
    ASSERT_EQ(params.size(), 3u);
    EXPECT_NEAR(params[0], w.w[0], 2e-5) << "after " << t;
    EXPECT_NEAR(params[1], w.w[1], 2e-5) << "after " << t;
    EXPECT_NEAR(params[2], b.w[0], 2e-5) << "after " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Update, OwnRules,
    testing::ValuesIn(std::vector<RuleCase>{
        {"adamw", "type: 'AdamW' momentum: 0.9 momentum2: 0.99", adamw},
        {"lamb", "type: 'LAMB' momentum: 0.9 momentum2: 0.99", lamb},
        {"lars", "type: 'LARS' momentum: 0.9 larc_eta: 0.02", lars},
        {"larc_scale", "momentum: 0.9 larc: true larc_eta: 0.02", larc_scale},
        {"larc_clip", "momentum: 0.9 larc: true larc_policy: 'clip' larc_eta: 20", larc_clip},
        {"poly_policies",
         "momentum: 0.5 momentum_policy: 'poly' max_momentum: 0.9 momentum_power: 2 "
         "weight_decay_policy: 'poly' max_weight_decay: 0.2 weight_decay_power: 2",
         poly_policies}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Schedules, OptimalMomentum) {
  SolverParameter param = parse_solver("momentum_policy: 'opt' max_iter: 5");
  EXPECT_NEAR(momentum_at(param, 0, 0.04F), 0.81, 1e-6);  // (1 - 0.2 / 2)^2
  param.set_max_momentum(0.7F);
  EXPECT_NEAR(momentum_at(param, 0, 0.04F), 0.7, 1e-6);
  param.set_momentum_policy("poly");
  EXPECT_NEAR(momentum_at(param, 50, 1), 0.7, 1e-6);  // stays at its end
}

TEST(OwnRules, AResumedRunIsTheSame) {
  for (const char* type : {"AdamW", "LAMB", "LARS"}) {
    const WorkFolder folder;
    const std::string text =
        str(kNet, "weight_decay: 0.05 snapshot_prefix: 's' type: '", type, "' momentum: 0.9");
    const auto whole = make_solver(text);
    whole->step(6);
    const auto first = make_solver(text);
    first->step(3);
    const auto second = make_solver(text, first->snapshot());
    second->step(3);
    EXPECT_EQ(all_params(*second), all_params(*whole)) << type;
  }
}

TEST(OwnRules, RefuseWhatCannotBeRight) {
  const WorkFolder folder;
  for (const auto& [fields, text] : std::vector<std::pair<const char*, const char*>>{
           {"type: 'AdmW'", "did you mean Adam"},
           {"type: 'AdamW' momentum: 1", "momentum must be in [0, 1) for Adam"},
           {"type: 'LARS' regularization_type: 'L1'", "regularization_type must be L2 for LARS"},
           {"type: 'LAMB' larc: true", "larc is for Caffe's solver types, not for LAMB"},
           {"larc: true larc_policy: 'clp'", "larc_policy must be scale or clip, not clp"},
           {"larc: true larc_turbo: true", "larc_turbo: true is not there"},
           {"momentum_policy: 'pol'", "momentum_policy: there is no policy \"pol\" (did you mean"},
           {"weight_decay_policy: 'opt'", "weight_decay_policy: there is no policy \"opt\""},
           {"max_momentum: 1", "max_momentum must be in [0, 1), not 1"}}) {
    const std::string error = solver_error(str(kNet, " | ", fields));
    EXPECT_NE(error.find(text), std::string::npos) << fields << ": " << error;
  }
}

}  // namespace
}  // namespace crema
