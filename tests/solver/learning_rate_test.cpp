// Rates worked out by hand for each policy, and what a policy refuses.
#include "solver/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "io/prototxt.h"
#include "solver/solver_harness.h"

namespace crema {
namespace {

LearningRate make_rate(const std::string& text) {
  SolverParameter param;
  parse_text(text, "solver.prototxt", &param);
  return LearningRate(param);
}

std::string error_of(const std::string& text) {
  try {
    make_rate(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

struct RateCase {
  const char* name;
  const char* solver;
  std::vector<std::pair<int, double>> expect;  // iteration, rate
};

void PrintTo(const RateCase& row, std::ostream* out) { *out << row.name; }

class RateCases : public testing::TestWithParam<RateCase> {};

TEST_P(RateCases, HaveTheRate) {
  LearningRate rate = make_rate(GetParam().solver);
  for (const auto& [iter, expected] : GetParam().expect) {
    EXPECT_NEAR(rate.at(iter), expected, 1e-6 * std::abs(expected)) << "iteration " << iter;
  }
}

const std::vector<RateCase> kCases = {
    {"fixed", "base_lr: 0.5 lr_policy: 'fixed'", {{0, 0.5}, {1000, 0.5}}},
    {"step",
     "base_lr: 1 lr_policy: 'step' gamma: 0.5 stepsize: 3",
     {{0, 1}, {2, 1}, {3, 0.5}, {5, 0.5}, {6, 0.25}, {30, 0.0009765625}}},
    {"exp", "base_lr: 2 lr_policy: 'exp' gamma: 0.5", {{0, 2}, {1, 1}, {4, 0.125}}},
    {"inv", "base_lr: 1 lr_policy: 'inv' gamma: 1 power: 2", {{0, 1}, {1, 0.25}, {3, 0.0625}}},
    {"inv_lenet",
     "base_lr: 0.01 lr_policy: 'inv' gamma: 0.0001 power: 0.75",
     {{10000, 0.00594604}}},
    {"multistep",
     "base_lr: 1 lr_policy: 'multistep' gamma: 0.1 stepvalue: 2 stepvalue: 5",
     {{0, 1}, {1, 1}, {2, 0.1}, {4, 0.1}, {5, 0.01}, {100, 0.01}}},
    {"multistep_repeated",
     "base_lr: 1 lr_policy: 'multistep' gamma: 0.1 stepvalue: 2 stepvalue: 2",
     {{1, 1}, {2, 0.01}}},
    {"poly",
     "base_lr: 1 lr_policy: 'poly' power: 2 max_iter: 10",
     {{0, 1}, {5, 0.25}, {9, 0.01}, {10, 0}, {11, 0}, {1000, 0}}},
    {"poly_root_beyond_the_end", "base_lr: 1 lr_policy: 'poly' power: 0.5 max_iter: 10", {{11, 0}}},
    {"sigmoid",
     "base_lr: 1 lr_policy: 'sigmoid' gamma: -1 stepsize: 2",
     {{2, 0.5}, {0, 0.880797}, {4, 0.119203}}},
    {"cosine",
     "base_lr: 2 lr_policy: 'cosine' max_iter: 4",
     {{0, 2}, {1, 1.70710678}, {2, 1}, {3, 0.29289322}, {4, 0}, {9, 0}}},
    {"warmup",
     "base_lr: 1 lr_policy: 'fixed' warmup_iter: 4",
     {{0, 0}, {1, 0.25}, {2, 0.5}, {3, 0.75}, {4, 1}, {5, 1}}},
    {"rampup",
     "base_lr: 1 lr_policy: 'fixed' rampup_interval: 4 rampup_lr: 0.2",
     {{0, 0.2}, {1, 0.25}, {2, 0.4}, {3, 0.65}, {4, 1}, {5, 1}}},
    {"lowest_rate",
     "base_lr: 1 lr_policy: 'step' gamma: 0.5 stepsize: 2 min_lr: 0.2",
     {{0, 1}, {2, 0.5}, {4, 0.25}, {6, 0.2}, {100, 0.2}}},
    {"poly_to_the_lowest_rate",
     "base_lr: 1 lr_policy: 'poly' power: 1 max_iter: 10 min_lr: 0.2",
     {{0, 1}, {5, 0.6}, {10, 0.2}, {20, 0.2}}},
    {"warmup_from_a_rate",
     "base_lr: 1 lr_policy: 'fixed' warmup_iter: 4 warmup_start_lr: 0.2",
     {{0, 0.2}, {1, 0.4}, {3, 0.8}, {4, 1}}},
    {"warmup_before_step",
     "base_lr: 1 lr_policy: 'step' gamma: 0.5 stepsize: 2 warmup_iter: 4",
     {{1, 0.25}, {2, 0.25}, {3, 0.375}, {4, 0.25}}},
};
INSTANTIATE_TEST_SUITE_P(LearningRate, RateCases, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(LearningRate, CatchesUpAtOnceWhereMultistepIsResumed) {
  LearningRate rate =
      make_rate("base_lr: 1 lr_policy: 'multistep' gamma: 0.1 stepvalue: 2 stepvalue: 5");
  LogLines log;
  EXPECT_NEAR(rate.at(7), 0.01, 1e-8);
  EXPECT_EQ(rate.current_step(), 2);
  EXPECT_EQ(log.with("MultiStep Status: Iteration 7, step = 2").size(), 1u);
  rate.at(8);
  EXPECT_EQ(log.with("MultiStep").size(), 1u);
}

TEST(LearningRate, LogsNothingWhereTheStateHasTheStep) {
  LearningRate rate = make_rate("base_lr: 1 lr_policy: 'multistep' gamma: 0.1 stepvalue: 2");
  rate.set_current_step(1);
  LogLines log;
  rate.at(3);
  EXPECT_TRUE(log.with("MultiStep").empty());
}

struct RefusedRate {
  const char* solver;
  const char* text;
};

TEST(LearningRate, RefusesWhatCannotBeRight) {
  const std::vector<RefusedRate> rows = {
      {"base_lr: 1 lr_policy: 'stp'", "did you mean step?"},
      {"base_lr: 1 lr_policy: 'Fixed'", "did you mean fixed?"},
      {"base_lr: 1 lr_policy: 'plateau'",
       "there is no policy \"plateau\" (SSD's and Intel's Caffe have it); there are fixed"},
      {"base_lr: 1", "lr_policy is missing"},
      {"lr_policy: 'fixed'", "base_lr is missing"},
      {"base_lr: nan lr_policy: 'fixed'", "base_lr must be finite"},
      {"base_lr: 1 lr_policy: 'step' gamma: 0.1", "stepsize is missing"},
      {"base_lr: 1 lr_policy: 'step' gamma: 0.1 stepsize: 0", "stepsize must be above 0, not 0"},
      {"base_lr: 1 lr_policy: 'step' gamma: 0.1 stepsize: -5", "stepsize must be above 0, not -5"},
      {"base_lr: 1 lr_policy: 'exp'", "gamma is missing"},
      {"base_lr: 1 lr_policy: 'inv' gamma: 1", "power is missing"},
      {"base_lr: 1 lr_policy: 'poly' power: 1", "max_iter is missing"},
      {"base_lr: 1 lr_policy: 'poly' power: 1 max_iter: 0", "max_iter must be above 0"},
      {"base_lr: 1 lr_policy: 'multistep' gamma: 1", "stepvalue is missing"},
      {"base_lr: 1 lr_policy: 'multistep' gamma: 1 stepvalue: 30 stepvalue: 10",
       "stepvalue must ascend, not 30, 10"},
      {"base_lr: 1 lr_policy: 'fixed' warmup_iter: -1", "warmup_iter must not be negative"},
      {"base_lr: 1 lr_policy: 'fixed' warmup_start_lr: -1", "warmup_start_lr must not be negative"},
      {"base_lr: 1 lr_policy: 'fixed' rampup_interval: -1", "rampup_interval must not be negative"},
      {"base_lr: 1 lr_policy: 'fixed' rampup_interval: 1 warmup_iter: 1", "give one"},
      {"base_lr: 1 lr_policy: 'fixed' min_lr: -1", "min_lr must not be negative"},
  };
  for (const RefusedRate& row : rows) {
    EXPECT_NE(error_of(row.solver).find(row.text), std::string::npos)
        << row.solver << ": " << error_of(row.solver);
  }
}

TEST(LearningRate, ReportsAllMistakesAtOnce) {
  const std::string text = error_of("lr_policy: 'step' stepsize: 0");
  for (const char* part : {"base_lr is missing", "gamma is missing", "stepsize must be above 0"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace crema
