// How a run begins and ends: weights that are loaded, stops that are asked for, losses that are no
// numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "solver/solver.h"
#include "solver/solver_harness.h"
#include "test_device.h"

namespace crema {
namespace {

TEST(Solver, StopsWhereItIsAskedTo) {
  const WorkFolder folder;
  write_rows("rows", 4, 3);
  const SolverParameter param = parse_solver(
      regression(4, "max_iter: 50 snapshot_prefix: 's' snapshot_after_train: true snapshot: 20"));
  int taken = 0;
  SolverOptions options;
  options.ops = make_ops(test_device());
  options.take_request = [&taken] {
    ++taken;
    return SolverRequest{.stop = taken == 5, .snapshot = taken == 3};
  };
  Solver solver(param, options);
  LogLines log;
  solver.solve();
  EXPECT_EQ(solver.iter(), 5);
  EXPECT_TRUE(exists("s_iter_3.solverstate"));
  EXPECT_TRUE(exists("s_iter_5.solverstate"));
  EXPECT_EQ(log.all().back(), "Optimization stopped early.");
}

TEST(Solver, StopsInATestAtOnce) {
  const WorkFolder folder;
  write_rows("rows", 4, 3);
  const SolverParameter param = parse_solver(regression(
      4, "test_iter: 1000000 test_interval: 1 snapshot_prefix: 's' snapshot_after_train: true"));
  int taken = 0;
  SolverOptions options;
  options.ops = make_ops(test_device());
  options.take_request = [&taken] {
    return SolverRequest{.stop = ++taken == 3, .snapshot = taken == 2};
  };
  Solver solver(param, options);
  LogLines log;
  solver.solve();
  EXPECT_EQ(solver.iter(), 0);
  EXPECT_EQ(solver.test_net(0).forward_count(), 2u);
  EXPECT_EQ(log.with("Test interrupted.").size(), 1u);
  EXPECT_TRUE(exists("s_iter_0.solverstate"));
}

TEST(Solver, StopsWhenTheLossIsNotFinite) {
  const WorkFolder folder;
  write_rows("rows", 4, 3);
  const auto solver = make_solver(regression(4, "base_lr: 1e30 snapshot: 1 snapshot_prefix: 's'"));
  try {
    solver->solve();
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("the loss is "), std::string::npos) << text;
    EXPECT_NE(text.find("; layer \""), std::string::npos) << text;
    EXPECT_NE(text.find("a smaller base_lr"), std::string::npos) << text;
    EXPECT_NE(text.find("the last good snapshot is s_iter_"), std::string::npos) << text;
  }
}

TEST(Solver, NamesTheLayerThatMadeTheFirstNan) {
  const WorkFolder folder;
  write_rows("rows", 4, 3);
  const auto solver = make_solver(
      str("net_param { ", data_layer("data", "", 4), kPredict,
          "layer { name: 'log' type: 'Log' bottom: 'ip' top: 'l' } "
          "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'l' bottom: 'label' top: 'loss' } } ",
          kFixed, "max_iter: 3 snapshot_prefix: 's' snapshot: 1"));
  try {
    solver->solve();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("iteration 0: the loss is "), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what())
                  .find("layer \"log\" (Log), top \"l\" is the first that is not finite"),
              std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(exists("s_iter_1.caffemodel"));
}

TEST(Solver, WritesNoSnapshotOfWeightsThatAreNotFinite) {
  const WorkFolder folder;
  write_rows("rows", 4, 3);
  const auto solver = make_solver(regression(4, "snapshot_prefix: 's'"));
  std::vector<float> values = solver->net().param_values(0);
  values[1] = std::numeric_limits<float>::quiet_NaN();
  solver->net().set_param_values(0, values);
  try {
    solver->snapshot();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("parameter 0 of layer \"ip\" is not finite"),
              std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(exists("s_iter_0.caffemodel"));
}

TEST(Solver, LoadsTheWeightsThatItsFieldsName) {
  const WorkFolder folder;
  write_rows("rows", 4, 3);
  const auto first = make_solver(regression(4, "snapshot_prefix: 's' random_seed: 1"));
  first->step(2);
  first->snapshot();
  LogLines log;
  const auto second = make_solver(
      regression(4, "random_seed: 2 weights: 's_iter_2.caffemodel, s_iter_2.caffemodel'"));
  EXPECT_EQ(all_params(*first), all_params(*second));
  EXPECT_EQ(log.with("Finetuning from s_iter_2.caffemodel").size(), 2u);
  EXPECT_EQ(second->iter(), 0);
}

/// A layer of the test net alone has its values from the weights too.
TEST(Solver, LoadsWeightsOfTestNetsToo) {
  const WorkFolder folder;
  write_rows("rows", 4, 3);
  const std::string more =
      "layer { name: 'more' type: 'InnerProduct' bottom: 'ip' top: 'more' inner_product_param { "
      "num_output: 1 bias_term: false weight_filler { type: 'uniform' min: 5 max: 6 } } } ";
  const auto solver_of = [&](const std::string& train, const std::string& fields) {
    return make_solver(str("train_net_param { ", data_layer("data", "", 4), kPredict, train, kLoss,
                           "} test_net_param { ", data_layer("data", "", 4), kPredict, more,
                           "} test_iter: 1 test_interval: 9 ", kFixed, "max_iter: 9 | ", fields));
  };
  const auto first = solver_of(more, "snapshot_prefix: 's'");
  first->snapshot();
  const auto param_of_more = [](const Net& net) {
    return net.param_values(net.param_of(net.layer_index("more"), 0));
  };
  const auto second = solver_of("", "random_seed: 9 weights: 's_iter_0.caffemodel'");
  EXPECT_EQ(param_of_more(second->test_net(0)), param_of_more(first->net()));
}

TEST(Solver, LogsWhereItsNetsComeFrom) {
  const WorkFolder folder;
  write_rows("rows", 4, 3);
  LogLines log;
  make_solver(regression(4, "test_iter: 1 test_interval: 1"));
  EXPECT_EQ(log.with("Creating training net specified in net_param.").size(), 1u);
  EXPECT_EQ(log.with("Creating test net (#0) specified by net_param").size(), 1u);
}

}  // namespace
}  // namespace crema
