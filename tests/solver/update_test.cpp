// Every update rule on a net of two numbers, against the formulas in double: loss (w x + b - y)^2 /
// 2, so dw = x r, db = r with r = w x + b - y.
#include <gtest/gtest.h>

#include <cmath>

#include "base/str.h"
#include "solver/solver_harness.h"

namespace crema {
namespace {

constexpr double kX = 2, kY = 1, kStart = 0.5;

std::string number_layer(const char* top, double value) {
  return str("layer { name: '", top, "' type: 'DummyData' top: '", top,
             "' dummy_data_param { shape { dim: 1 dim: 1 } data_filler { value: ", value,
             " } } } ");
}

/// The bias learns twice as fast and does not decay.
std::string two_number_net(const char* loss_weight = "") {
  return str("net_param { name: 'two' ", number_layer("x", kX), number_layer("y", kY),
             "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip' param { lr_mult: 1 } "
             "param { lr_mult: 2 decay_mult: 0 } inner_product_param { num_output: 1 weight_filler "
             "{ value: 0.5 } "
             "bias_filler { value: 0.5 } } } "
             "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'y' top: 'loss' ",
             loss_weight, "} } max_iter: 100 snapshot_after_train: false ");
}

struct Fields {
  double rate = 0.1, momentum = 0, momentum2 = 0.999, rms_decay = 0.99, delta = 1e-8, decay = 0,
         clip = -1;
  bool l1 = false;
  int iter_size = 1;
};

/// One parameter with the two numbers of its history.
struct Number {
  double w, rate_mult, decay_mult, h = 0, u = 0;
};

using Formula = double (*)(Number&, double g, double rate, const Fields&, int t);

double sgd(Number& n, double g, double rate, const Fields& f, int) {
  return n.h = f.momentum * n.h + rate * g;
}

double nesterov(Number& n, double g, double rate, const Fields& f, int) {
  const double old = n.h;
  n.h = f.momentum * n.h + rate * g;
  return (1 + f.momentum) * n.h - f.momentum * old;
}

double adagrad(Number& n, double g, double rate, const Fields& f, int) {
  n.h += g * g;
  return rate * g / (std::sqrt(n.h) + f.delta);
}

double rmsprop(Number& n, double g, double rate, const Fields& f, int) {
  n.h = f.rms_decay * n.h + (1 - f.rms_decay) * g * g;
  return rate * g / (std::sqrt(n.h) + f.delta);
}

double adadelta(Number& n, double g, double rate, const Fields& f, int) {
  n.h = f.momentum * n.h + (1 - f.momentum) * g * g;
  const double d = g * std::sqrt((n.u + f.delta) / (n.h + f.delta));
  n.u = f.momentum * n.u + (1 - f.momentum) * d * d;
  return rate * d;
}

double adam(Number& n, double g, double rate, const Fields& f, int t) {
  n.h = f.momentum * n.h + (1 - f.momentum) * g;
  n.u = f.momentum2 * n.u + (1 - f.momentum2) * g * g;
  return rate * std::sqrt(1 - std::pow(f.momentum2, t)) / (1 - std::pow(f.momentum, t)) * n.h /
         (std::sqrt(n.u) + f.delta);
}

struct RuleCase {
  const char* name;
  std::string solver;
  Formula formula;
  Fields fields{};
};

void PrintTo(const RuleCase& row, std::ostream* out) { *out << row.name; }

class RuleCases : public testing::TestWithParam<RuleCase> {};

/// Iteration t (from 1) of the formula on both numbers.
void step_by_hand(Number& w, Number& b, const RuleCase& row, int t) {
  const Fields& f = row.fields;
  const double r = w.w * kX + b.w - kY;
  double dw = f.iter_size * kX * r, db = f.iter_size * r;  // accumulated over equal batches
  const double norm = std::hypot(dw, db);
  const double clip = f.clip >= 0 && norm > f.clip ? f.clip / norm : 1;
  for (const auto& [number, gradient] : {std::pair{&w, dw}, std::pair{&b, db}}) {
    const double sign = number->w > 0 ? 1 : number->w < 0 ? -1 : 0;
    const double g =
        gradient * clip / f.iter_size + f.decay * number->decay_mult * (f.l1 ? sign : number->w);
    number->w -= row.formula(*number, g, f.rate * number->rate_mult, f, t);
  }
}

TEST_P(RuleCases, FollowTheFormula) {
  const WorkFolder folder;
  const RuleCase& row = GetParam();
  const auto solver =
      make_solver(two_number_net() + "base_lr: 0.1 lr_policy: 'fixed' " + row.solver);
  Number w{kStart, 1, 1}, b{kStart, 2, 0};
  for (int t = 1; t <= 6; ++t) {
    solver->step(1);
    step_by_hand(w, b, row, t);
    const std::vector<float> params = all_params(*solver), history = all_history(*solver);
    ASSERT_EQ(params.size(), 2u);
    EXPECT_NEAR(params[0], w.w, 2e-5) << "weight after " << t;
    EXPECT_NEAR(params[1], b.w, 2e-5) << "bias after " << t;
    EXPECT_NEAR(history[0], w.h, 2e-5 * std::max(1.0, std::abs(w.h)));
    EXPECT_NEAR(history[1], b.h, 2e-5 * std::max(1.0, std::abs(b.h)));
    if (history.size() == 4) {
      EXPECT_NEAR(history[2], w.u, 2e-5 * std::max(1.0, std::abs(w.u)));
      EXPECT_NEAR(history[3], b.u, 2e-5 * std::max(1.0, std::abs(b.u)));
    }
  }
}

const std::vector<RuleCase> kRules = {
    {"sgd", "", sgd, {}},
    {"sgd_momentum", "momentum: 0.9", sgd, {.momentum = 0.9}},
    {"sgd_decay_l2", "momentum: 0.5 weight_decay: 0.1", sgd, {.momentum = 0.5, .decay = 0.1}},
    {"sgd_decay_l1",
     "momentum: 0.5 weight_decay: 0.1 regularization_type: 'L1'",
     sgd,
     {.momentum = 0.5, .decay = 0.1, .l1 = true}},
    {"sgd_iter_size", "momentum: 0.5 iter_size: 3", sgd, {.momentum = 0.5, .iter_size = 3}},
    {"sgd_clip", "clip_gradients: 0.2 weight_decay: 0.1", sgd, {.decay = 0.1, .clip = 0.2}},
    {"sgd_clip_before_iter_size",
     "clip_gradients: 0.2 iter_size: 4 weight_decay: 0.1",
     sgd,
     {.decay = 0.1, .clip = 0.2, .iter_size = 4}},
    {"nesterov", "type: 'Nesterov' momentum: 0.9", nesterov, {.momentum = 0.9}},
    {"adagrad",
     "type: 'AdaGrad' delta: 0.01 weight_decay: 0.05",
     adagrad,
     {.delta = 0.01, .decay = 0.05}},
    {"rmsprop",
     "type: 'RMSProp' rms_decay: 0.8 delta: 0.01",
     rmsprop,
     {.rms_decay = 0.8, .delta = 0.01}},
    {"adadelta",
     "type: 'AdaDelta' momentum: 0.95 delta: 0.001",
     adadelta,
     {.momentum = 0.95, .delta = 0.001}},
    {"adam", "type: 'Adam' momentum: 0.9 delta: 0.001", adam, {.momentum = 0.9, .delta = 0.001}},
    {"adam_iter_size",
     "type: 'Adam' momentum: 0.8 momentum2: 0.9 iter_size: 2",
     adam,
     {.momentum = 0.8, .momentum2 = 0.9, .iter_size = 2}},
    {"old_enum", "solver_type: NESTEROV momentum: 0.9", nesterov, {.momentum = 0.9}},
};
INSTANTIATE_TEST_SUITE_P(Update, RuleCases, testing::ValuesIn(kRules),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Update, ClippingIsLoggedWithItsNumbers) {
  const WorkFolder folder;
  const auto solver =
      make_solver(two_number_net() + "base_lr: 0.1 lr_policy: 'fixed' clip_gradients: 0.5");
  LogLines log;
  solver->step(1);
  // r = 0.5, gradients 1 and 0.5
  EXPECT_EQ(log.with("Gradient clipping: scaling down gradients (L2 norm 1.11803 > 0.5) by scale "
                     "factor 0.447214")
                .size(),
            1u);
}

TEST(Update, WithoutAGradientOnlyDecayIsLeft) {
  const WorkFolder folder;
  const auto solver = make_solver(two_number_net("loss_weight: 0 ") +
                                  "base_lr: 0.1 lr_policy: 'fixed' weight_decay: 0.1");
  solver->step(1);
  EXPECT_NEAR(all_params(*solver)[0], 0.5 - 0.1 * 0.1 * 0.5, 1e-6);
  EXPECT_EQ(all_params(*solver)[1], 0.5f);
}

struct RefusedUpdate {
  const char* solver;
  const char* text;
};

TEST(Update, RefusesWhatCannotBeRight) {
  const WorkFolder folder;
  const std::vector<RefusedUpdate> rows = {
      {"type: 'Addam'", "did you mean Adam?"},
      {"type: 'sgd'", "there is no solver \"sgd\""},
      {"type: 'AdaGrad' momentum: 0.9", "momentum must be 0 for AdaGrad, not 0.9"},
      {"type: 'RMSProp' momentum: 0.9", "momentum must be 0 for RMSProp"},
      {"type: 'RMSProp' rms_decay: 1", "rms_decay must be in [0, 1), not 1"},
      {"type: 'RMSProp' rms_decay: -0.1", "rms_decay must be in [0, 1)"},
      {"type: 'Adam' momentum: 1", "momentum must be in [0, 1) for Adam, not 1"},
      {"type: 'Adam' momentum2: 1", "momentum2 must be in [0, 1) for Adam, not 1"},
      {"regularization_type: 'L3'", "regularization_type must be L1 or L2, not L3"},
      {"iter_size: 0", "iter_size must be at least 1, not 0"},
      {"average_loss: 0", "average_loss must be at least 1, not 0"},
      {"display: -1", "display must not be negative"},
      {"snapshot: -1", "snapshot must not be negative"},
      {"type: 'SGD' solver_type: ADAM", "solver_type"},
  };
  for (const RefusedUpdate& row : rows) {
    const std::string text =
        solver_error(two_number_net() + "base_lr: 0.1 lr_policy: 'fixed' " + row.solver);
    EXPECT_NE(text.find(row.text), std::string::npos) << row.solver << ": " << text;
    EXPECT_EQ(text.find("solver.prototxt"), 0u) << text;
  }
}

}  // namespace
}  // namespace crema
