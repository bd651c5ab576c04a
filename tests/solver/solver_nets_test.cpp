// Which nets a solver takes for training and testing, and what it refuses.
#include "solver/solver_nets.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "solver/solver_harness.h"

namespace crema {
namespace {

SolverParameter solver_of(const std::string& text) {
  SolverParameter param;
  parse_text(text, "solver.prototxt", &param);
  return param;
}

std::string error_of(const std::string& text) {
  try {
    const SolverParameter param = solver_of(text);
    train_net_source(param, "solver.prototxt", {});
    test_net_sources(param, "solver.prototxt", {});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(SolverNets, ExactlyOneFieldGivesTheTrainNet) {
  const WorkFolder folder;
  write_file("n.prototxt", "name: 'n'\n");
  EXPECT_EQ(error_of("net: 'n.prototxt'"), "");
  EXPECT_EQ(error_of("train_net: 'n.prototxt'"), "");
  EXPECT_EQ(error_of("net_param { name: 'n' }"), "");
  EXPECT_EQ(error_of("train_net_param { name: 'n' }"), "");
  EXPECT_NE(error_of("max_iter: 1").find("no net to train"), std::string::npos);
  EXPECT_NE(error_of("net: 'n.prototxt' train_net_param {}")
                .find("net and train_net_param each give a net"),
            std::string::npos);
  EXPECT_EQ(error_of("net: 'none.prototxt'")
                .find("solver.prototxt: net: none.prototxt: No such file or directory (looked for "
                      "from /"),
            0u);
}

TEST(SolverNets, TestNetsComeInCaffesOrder) {
  const WorkFolder folder;
  write_file("n.prototxt", "name: 'n'\n");
  write_file("t.prototxt", "name: 't'\n");
  const auto tests = test_net_sources(
      solver_of("net: 'n.prototxt' test_net: 't.prototxt' test_net_param { name: 'p' } "
                "test_iter: 1 test_iter: 2 test_iter: 3 test_iter: 4 test_interval: 5"),
      "solver.prototxt", {});
  ASSERT_EQ(tests.size(), 4u);
  const char* names[] = {"p", "t", "n", "n"};
  const char* origins[] = {"test_net_param", "test_net file: t.prototxt", "net file: n.prototxt",
                           "net file: n.prototxt"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(tests[i].net.name(), names[i]);
    EXPECT_EQ(tests[i].origin, origins[i]);
    EXPECT_EQ(tests[i].test_iter, static_cast<int>(i) + 1);
    EXPECT_EQ(tests[i].net.state().phase(), TEST);
  }
}

TEST(SolverNets, StatesAreMerged) {
  const SolverParameter param = solver_of(
      "net_param { state { level: 1 stage: 'a' } } train_state { level: 3 stage: 'b' } test_state "
      "{ stage: 'c' } "
      "test_iter: 1 test_interval: 1");
  const NetState train = train_net_source(param, "s", {}).net.state();
  EXPECT_EQ(train.phase(), TRAIN);
  EXPECT_EQ(train.level(), 3);
  EXPECT_EQ(join(train.stage()), "a, b");
  const NetState test = test_net_sources(param, "s", {})[0].net.state();
  EXPECT_EQ(test.phase(), TEST);
  EXPECT_EQ(test.level(), 1);
  EXPECT_EQ(join(test.stage()), "a, c");
}

struct Refused {
  const char* solver;
  const char* text;
};

TEST(SolverNets, NumbersMustAgree) {
  const std::vector<Refused> rows = {
      {"net_param {} test_net_param {} test_interval: 1",
       "test_iter is given 0 times, the 1 test nets need one each"},
      {"train_net_param {} test_net_param {} test_iter: 1 test_iter: 1 test_interval: 1",
       "test_iter is given 2 times, the 1 test nets need one each"},
      {"train_net_param {} test_iter: 1 test_interval: 1",
       "test_iter is given 1 times, the 0 test nets"},
      {"net_param {} test_iter: 1",
       "test_interval must be above 0 where there are test nets, not 0"},
      {"net_param {} test_iter: -1 test_interval: 1", "test_iter must not be negative: -1"},
      {"net_param {} test_iter: 1 test_interval: 1 test_state {} test_state {}",
       "test_state is given 2 times"},
      {"net_param {} test_interval: -1", "test_interval must not be negative"},
  };
  for (const Refused& row : rows) {
    EXPECT_NE(error_of(row.solver).find(row.text), std::string::npos)
        << row.solver << ": " << error_of(row.solver);
    EXPECT_EQ(error_of(row.solver).find("solver.prototxt: "), 0u);
  }
}

}  // namespace
}  // namespace crema
