// keep_best, patience, lengths in epochs.
#include <gtest/gtest.h>

#include "io/weights.h"
#include "solver/epochs.h"
#include "solver/solver_harness.h"

namespace crema {
namespace {

/// Learns w towards 1 at a rate that overshoots: the test loss (w - 1)^2 / 2 grows from test to
/// test when `rate` is above 2, and shrinks when it is below 1.
std::string one_weight(double rate, const std::string& more) {
  return str(
      "net_param { name: 'one' layer { name: 'x' type: 'DummyData' top: 'x' top: 'y' "
      "dummy_data_param { shape { dim: 1 dim: 1 } data_filler { value: 1 } } } "
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip' inner_product_param { "
      "num_output: 1 bias_term: false weight_filler { value: 0.5 } } } "
      "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'y' top: 'loss' } } "
      "lr_policy: 'fixed' max_iter: 20 test_iter: 1 test_interval: 2 snapshot_prefix: 's' "
      "snapshot_after_train: false keep_best: 'loss' base_lr: ",
      rate, " | ", more);
}

float weight_in(const std::string& file) {
  return read_weights(file).layers.at(1).blobs.at(0).data.at(0);
}

TEST(KeepBest, WritesTheWeightsOfTheBestTest) {
  const WorkFolder folder;
  const auto solver = make_solver(one_weight(2.5, "max_iter: 7"));  // 0.5 is the best ever
  LogLines log;
  solver->solve();
  EXPECT_EQ(weight_in("s_best.caffemodel"), 0.5F);
  EXPECT_EQ(log.with("Best loss so far: 0.125 at iteration 0, kept in s_best.caffemodel").size(),
            1u);
  EXPECT_EQ(log.with("Best loss so far").size(), 1u);
}

TEST(KeepBest, FollowsWhileItGetsBetter) {
  const WorkFolder folder;
  const auto solver = make_solver(one_weight(0.5, "max_iter: 4 snapshot_format: HDF5"));
  LogLines log;
  solver->solve();
  EXPECT_EQ(log.with("Best loss so far").size(), 3u);  // tests at 0, 2 and 4
  EXPECT_EQ(read_weights("s_best.caffemodel.h5").layers.at(0).blobs.at(0).data.at(0),
            all_params(*solver)[0]);
}

TEST(Patience, EndsTrainingAfterTestsWithoutGain) {
  const WorkFolder folder;
  const auto solver = make_solver(one_weight(2.5, "patience: 2"));
  LogLines log;
  solver->solve();
  EXPECT_EQ(solver->iter(), 4);  // the best test is at 0, those at 2 and 4 are worse
  EXPECT_TRUE(solver->stopped_early());
  EXPECT_EQ(
      log.with("Stopping: loss got no better in 2 tests; the best was 0.125 at iteration 0").size(),
      1u);
  EXPECT_EQ(log.with("Optimization stopped early.").size(), 1u);
}

TEST(Patience, GoesOnCountingAfterAResume) {
  for (const char* format : {"", "snapshot_format: HDF5"}) {
    const WorkFolder folder;
    const std::string text = one_weight(2.5, str("patience: 2 ", format));
    const auto first = make_solver(text);
    first->step(3);
    const auto second = make_solver(text, first->snapshot());
    second->step(10);
    EXPECT_EQ(second->iter(), 4) << format;
  }
}

TEST(KeepBest, RefusesWhatIsNoOutput) {
  const WorkFolder folder;
  EXPECT_NE(solver_error(one_weight(1, "keep_best: 'los'"))
                .find("keep_best: the test net has no output \"los\" (did you mean loss?)"),
            std::string::npos);
  EXPECT_NE(solver_error(one_weight(1, "patience: -1")).find("patience must not be negative"),
            std::string::npos);
  std::string text = one_weight(1, "patience: 2");
  text.replace(text.find("keep_best: 'loss'"), 17, "");
  EXPECT_NE(solver_error(text).find("patience needs keep_best"), std::string::npos);
  text = one_weight(1, "");
  text.replace(text.find("test_iter: 1 test_interval: 2"), 29, "");
  EXPECT_NE(solver_error(text).find("keep_best needs a test net"), std::string::npos);
}

std::string with_rows(const std::string& more) {
  return str(
      "net_param { name: 'n' layer { name: 'data' type: 'HDF5Data' top: 'data' top: 'label' "
      "hdf5_data_param { source: 'rows.txt' batch_size: 4 } } "
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { "
      "num_output: 1 } } layer { name: 'l' type: 'EuclideanLoss' bottom: 'ip' bottom: 'label' } } "
      "base_lr: 0.01 lr_policy: 'fixed' snapshot_after_train: false | ",
      more);
}

TEST(Epochs, BecomeIterations) {
  const WorkFolder folder;
  write_rows("rows", 30, 3);
  struct Row {
    const char* fields;
    int max_iter, test_interval, snapshot;
  };
  for (const Row& row :
       {Row{"max_epoch: 2 test_epoch: 1 snapshot_epoch: 0.5", 15, 8, 4},  // 7.5 an epoch
        Row{"max_epoch: 0.1", 1, 0, 0}, Row{"max_epoch: 3 iter_size: 2", 12, 0, 0},
        Row{"max_iter: 9 test_epoch: 0.01", 9, 1, 0}}) {
    SolverParameter param = parse_solver(with_rows(row.fields));
    resolve_epochs(param, "solver.prototxt", {});
    EXPECT_EQ(param.max_iter(), row.max_iter) << row.fields;
    EXPECT_EQ(param.test_interval(), row.test_interval) << row.fields;
    EXPECT_EQ(param.snapshot(), row.snapshot) << row.fields;
    EXPECT_FALSE(param.has_max_epoch() || param.has_test_epoch() || param.has_snapshot_epoch());
  }
  LogLines log;
  const auto solver = make_solver(with_rows("max_epoch: 2"));
  solver->solve();
  EXPECT_EQ(solver->iter(), 15);
  EXPECT_EQ(
      log.with("An epoch is 7.5 iterations (30 records of layer \"data\" in batches of 4)").size(),
      1u);
}

TEST(Epochs, AreRefusedWhereTheyMakeNoSense) {
  const WorkFolder folder;
  write_rows("rows", 30, 3);
  for (const auto& [fields, text] : std::vector<std::pair<std::string, const char*>>{
           {with_rows("max_epoch: 2 max_iter: 3"), "gives both max_epoch and max_iter"},
           {with_rows("max_epoch: -1"), "max_epoch must be above 0, not -1"},
           {with_rows("max_iter: 1 snapshot_epoch: 1 snapshot: 5"),
            "gives both snapshot_epoch and snapshot"},
           {one_weight(1, "test_epoch: 1"), "gives both test_epoch and"}}) {
    const std::string error = solver_error(fields);
    EXPECT_NE(error.find(text), std::string::npos) << error;
  }
  std::string text = one_weight(1, "max_epoch: 2");
  text.replace(text.find("max_iter: 20"), 12, "");
  EXPECT_NE(solver_error(text).find("lengths in epochs need a train net that reads records"),
            std::string::npos);
}

}  // namespace
}  // namespace crema
