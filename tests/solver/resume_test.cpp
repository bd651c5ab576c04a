// Going on from a snapshot is the same, bit for bit, as never having stopped: every solver type,
// both formats, data that wraps round in mid-batch, dropout, test nets.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "feed/feed.h"
#include "io/hdf5.h"
#include "io/solver_state.h"
#include "io/weights.h"
#include "solver/snapshot.h"
#include "solver/solver_harness.h"
#include "test_device.h"

namespace crema {
namespace {

// 11 records in batches of 4: no batch begins where the first did until 11 of them have passed.
constexpr const char* kNet = R"(
  net_param { name: "small"
    layer { name: "data" type: "HDF5Data" top: "data" top: "label" include { phase: TRAIN }
            hdf5_data_param { source: "rows.txt" batch_size: 4 } }
    layer { name: "data" type: "HDF5Data" top: "data" top: "label" include { phase: TEST }
            hdf5_data_param { source: "rows.txt" batch_size: 3 } }
    layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1" param { lr_mult: 1 } param { lr_mult: 2 }
            inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
    layer { name: "bn" type: "BatchNorm" bottom: "ip1" top: "bn" }
    layer { name: "relu" type: "ReLU" bottom: "bn" top: "bn" }
    layer { name: "drop" type: "Dropout" bottom: "bn" top: "bn" }
    layer { name: "ip2" type: "InnerProduct" bottom: "bn" top: "ip2"
            inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "ip2" bottom: "label" top: "loss" } }
  test_iter: 2 test_interval: 4 random_seed: 7 snapshot: 10 snapshot_after_train: false snapshot_prefix: "s"
)";

struct Type {
  const char* name;
  const char* text;
};

constexpr Type kTypes[] = {
    {"SGD", "base_lr: 0.05 momentum: 0.9 weight_decay: 0.01"},
    {"Nesterov", "base_lr: 0.05 momentum: 0.9 weight_decay: 0.01"},
    {"AdaGrad", "base_lr: 0.05 weight_decay: 0.01"},
    {"RMSProp", "base_lr: 0.01 rms_decay: 0.9"},
    {"AdaDelta", "base_lr: 1 momentum: 0.95 delta: 1e-5"},
    {"Adam", "base_lr: 0.01 momentum: 0.9"},
};

std::string solver_text(const Type& type, const std::string& more = "") {
  return str(kNet, " type: '", type.name, "' ", type.text,
             " lr_policy: 'multistep' gamma: 0.5 stepvalue: 6 stepvalue: 14 | ", more);
}

class Resume : public testing::TestWithParam<Type> {};

void expect_same(Solver& a, Solver& b) {
  EXPECT_EQ(a.iter(), b.iter());
  EXPECT_EQ(all_params(a), all_params(b));
  EXPECT_EQ(all_history(a), all_history(b));
  ASSERT_EQ(a.test_net_count(), b.test_net_count());
  a.test_all();
  b.test_all();
  EXPECT_EQ(a.test_scores(0), b.test_scores(0));
}

TEST_P(Resume, IsGoingOn) {
  for (const char* format : {"BINARYPROTO", "HDF5"}) {
    const WorkFolder folder;
    write_rows("rows", 11, 5);
    const std::string text = solver_text(GetParam(), str("max_iter: 20 snapshot_format: ", format));
    const auto whole = make_solver(text);
    whole->step(20);
    const std::string state =
        std::string("s_iter_10.solverstate") + (format[0] == 'H' ? ".h5" : "");
    const auto resumed = make_solver(text, state);
    EXPECT_EQ(resumed->iter(), 10);
    EXPECT_EQ(resumed->net().forward_count(), 10u);
    EXPECT_EQ(resumed->test_net(0).forward_count(), 6u);  // tests at 0, 4 and 8
    resumed->step(10);
    expect_same(*whole, *resumed);
  }
}

TEST_P(Resume, FromAStateWithoutCursorsIsGoingOnToo) {
  const WorkFolder folder;
  write_rows("rows", 11, 5);
  const std::string text = solver_text(GetParam(), "max_iter: 20 iter_size: 2");
  const auto whole = make_solver(text);
  whole->step(20);
  SolverSnapshot state = read_solver_state("s_iter_10.solverstate");
  state.seed.reset();
  state.forward_count.reset();
  state.cursors.clear();
  state.test_forward_counts.clear();
  write_solver_state_binary("plain.solverstate", state);
  const auto resumed = make_solver(text, "plain.solverstate");
  resumed->step(10);
  expect_same(*whole, *resumed);
}

INSTANTIATE_TEST_SUITE_P(Types, Resume, testing::ValuesIn(kTypes),
                         [](const auto& info) { return std::string(info.param.name); });

constexpr const char* kTwoDataLayers = R"(
  net_param { name: "two"
    layer { name: "data" type: "HDF5Data" top: "data" hdf5_data_param { source: "rows.txt" batch_size: 4 } }
    layer { name: "data" type: "HDF5Data" top: "label" hdf5_data_param { source: "labels.txt" batch_size: 4 } }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
            inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "label" top: "loss" } }
  base_lr: 0.05 lr_policy: 'fixed' random_seed: 7 snapshot: 10 snapshot_after_train: false
  snapshot_prefix: "s" max_iter: 20
)";

/// Both have the name "data"; the second one stands elsewhere from the beginning.
TEST(Snapshot, HoldsACursorForEachOfTwoDataLayersOfOneName) {
  const WorkFolder folder;
  write_rows("rows", 11, 5);
  Hdf5File labels = Hdf5File::create("labels.h5");
  const std::vector<float> values = {1, -2, 3, -4, 5, -6, 7};
  labels.write("label", Shape{7, 1}, values.data());
  labels.close();
  write_file("labels.txt", "labels.h5\n");
  const auto second = [](Solver& solver) { return solver.net().layer(1).feed(); };
  const auto whole = make_solver(kTwoDataLayers);
  second(*whole)->seek(3);
  whole->step(20);
  const auto resumed = make_solver(kTwoDataLayers, "s_iter_10.solverstate");
  EXPECT_EQ(second(*resumed)->position(), 43u);
  EXPECT_EQ(resumed->net().find_layer("data")->feed()->position(), 40u);
  resumed->step(10);
  EXPECT_EQ(all_params(*whole), all_params(*resumed));
}

TEST(Snapshot, WithoutCursorsTwoDataLayersOfOneNameGoOnByTheirOwnBatch) {
  const WorkFolder folder;
  write_rows("rows", 11, 5);
  std::string text = kTwoDataLayers;
  text.replace(text.find("batch_size: 4"), 13, "batch_size: 5");
  text.replace(text.find("bottom: \"ip\" bottom"), 12, "bottom: \"cut\"");
  text.insert(text.find("layer { name: \"loss\""),
              "layer { name: \"cut\" type: \"Slice\" bottom: \"ip\" top: \"cut\" "
              "top: \"rest\" slice_param { axis: 0 slice_point: 4 } } ");
  text.replace(text.find("labels.txt"), 10, "rows.txt");
  make_solver(text)->step(10);
  SolverSnapshot state = read_solver_state("s_iter_10.solverstate");
  state.forward_count.reset();
  write_solver_state_binary("plain.solverstate", state);
  const auto resumed = make_solver(text, "plain.solverstate");
  EXPECT_EQ(resumed->net().layer(0).feed()->position(), 50u);
  EXPECT_EQ(resumed->net().layer(1).feed()->position(), 40u);
}

TEST(Snapshot, InTheMiddleOfATestHoldsWhereTheTestBegan) {
  const WorkFolder folder;
  write_rows("rows", 11, 5);
  const std::string text = solver_text(kTypes[0], "max_iter: 20");
  Solver* running = nullptr;
  SolverOptions options;
  options.ops = make_ops(test_device());
  options.take_request = [&running] {  // before the second batch of the test at iteration 8
    const bool is_there =
        running != nullptr && running->iter() == 8 && running->test_net(0).forward_count() == 5;
    return SolverRequest{.stop = false, .snapshot = is_there};
  };
  Solver whole(parse_solver(text), options);
  running = &whole;
  whole.step(9);
  const auto resumed = make_solver(text, "s_iter_8.solverstate");
  resumed->step(1);
  EXPECT_EQ(whole.test_scores(0), resumed->test_scores(0));
  expect_same(whole, *resumed);
}

TEST(Snapshot, HoldsTheSeedOfARunWithoutOne) {
  const WorkFolder folder;
  write_rows("rows", 11, 5);
  const std::string text = solver_text(kTypes[0], "max_iter: 20 random_seed: -1");
  const auto whole = make_solver(text);
  whole->step(20);
  const auto resumed = make_solver(text, "s_iter_10.solverstate");
  EXPECT_EQ(whole->seed(), resumed->seed());
  resumed->step(10);
  expect_same(*whole, *resumed);
}

TEST(Snapshot, TwoRunsDifferWithoutASeedAndAgreeWithOne) {
  const WorkFolder folder;
  write_rows("rows", 11, 5);
  const auto train = [](const char* seed) {
    const auto solver = make_solver(solver_text(kTypes[0], std::string("max_iter: 20 ") + seed));
    solver->step(3);
    return all_params(*solver);
  };
  EXPECT_NE(train("random_seed: -1"), train("random_seed: -1"));
  EXPECT_EQ(train("random_seed: 5"), train("random_seed: 5"));
}

TEST(Snapshot, OfAnotherSolverTypeOrNetIsRefused) {
  const WorkFolder folder;
  write_rows("rows", 11, 5);
  make_solver(solver_text(kTypes[0], "max_iter: 20"))->step(10);
  const std::string other_type =
      solver_error(solver_text(kTypes[5], "max_iter: 20"), "s_iter_10.solverstate");
  EXPECT_NE(
      other_type.find(
          "s_iter_10.solverstate: the state holds 7 history blobs, this solver and net need 14"),
      std::string::npos)
      << other_type;
  std::string wider = solver_text(kTypes[0], "max_iter: 20");
  wider.replace(wider.find("num_output: 6"), 13, "num_output: 8");
  const std::string other_net = solver_error(wider, "s_iter_10.solverstate");
  EXPECT_NE(other_net.find("has shape 6 5, parameter 0 of layer \"ip1\" has 8 5"),
            std::string::npos)
      << other_net;
}

TEST(Snapshot, IsFoundAgainInAMovedFolder) {
  const WorkFolder folder;
  write_rows("rows", 11, 5);
  std::filesystem::create_directory("old");
  const std::string text = solver_text(kTypes[0], "max_iter: 20 snapshot_prefix: 'old/s'");
  const auto whole = make_solver(text);
  whole->step(10);
  EXPECT_EQ(read_solver_state("old/s_iter_10.solverstate").learned_net, "old/s_iter_10.caffemodel");
  std::filesystem::rename("old", "new");
  EXPECT_EQ(
      find_learned_net(read_solver_state("new/s_iter_10.solverstate"), "new/s_iter_10.solverstate"),
      "new/s_iter_10.caffemodel");
  std::filesystem::remove("new/s_iter_10.caffemodel");
  std::filesystem::create_directory("old");
  const std::string error = solver_error(text, "new/s_iter_10.solverstate");
  EXPECT_NE(
      error.find("\"old/s_iter_10.caffemodel\" is not there, nor is \"new/s_iter_10.caffemodel\""),
      std::string::npos)
      << error;
}

TEST(Snapshot, WritesBothFormatsWithTheSameValues) {
  const WorkFolder folder;
  write_rows("rows", 11, 5);
  const auto binary = make_solver(solver_text(kTypes[5], "max_iter: 20 snapshot_diff: true"));
  const auto hdf5 =
      make_solver(solver_text(kTypes[5], "max_iter: 20 snapshot_diff: true snapshot_format: HDF5"));
  binary->step(3);
  hdf5->step(3);
  EXPECT_EQ(binary->snapshot(), "s_iter_3.solverstate");
  EXPECT_EQ(hdf5->snapshot(), "s_iter_3.solverstate.h5");
  const auto values = [](const std::string& path, bool diff) {
    std::vector<std::vector<float>> out;
    for (const LayerWeights& layer : read_weights(path).layers) {
      for (const HostBlob& blob : layer.blobs) out.push_back(diff ? blob.diff : blob.data);
    }
    std::sort(out.begin(), out.end());
    return out;
  };
  EXPECT_EQ(values("s_iter_3.caffemodel", false).size(), 7u);
  EXPECT_EQ(values("s_iter_3.caffemodel", false), values("s_iter_3.caffemodel.h5", false));
  const SolverSnapshot a = read_solver_state("s_iter_3.solverstate");
  const SolverSnapshot b = read_solver_state("s_iter_3.solverstate.h5");
  ASSERT_EQ(a.history.size(), 14u);
  ASSERT_EQ(b.history.size(), 14u);
  for (size_t i = 0; i < 14; ++i) {
    EXPECT_EQ(a.history[i].data, b.history[i].data) << i;
    EXPECT_EQ(a.history[i].shape, b.history[i].shape) << i;
  }
  EXPECT_EQ(a.cursors.size(), 2u);
  EXPECT_EQ(a.cursors[0].record, 12u);
}

struct PrefixCase {
  const char* prefix;
  const char* solver;
  const char* expect;
};

TEST(Snapshot, PrefixFollowsTheRules) {
  const WorkFolder folder;
  std::filesystem::create_directories("some/folder");
  const std::vector<PrefixCase> rows = {
      {"a/b", "solver.prototxt", "a/b"},
      {"", "solver.prototxt", "solver"},
      {"", "in/my.solver.prototxt", "in/my.solver"},
      {"", "in.dir/solver", "in.dir/solver"},
      {"some/folder", "in/quick.prototxt", "some/folder/quick"},
      {"some/folder/", "quick.prototxt", "some/folder/quick"},
  };
  for (const PrefixCase& row : rows) {
    SolverParameter param;
    param.set_snapshot_prefix(row.prefix);
    EXPECT_EQ(snapshot_prefix(param, row.solver), row.expect);
  }
}

TEST(Snapshot, PrefixThatCannotBeWrittenIsRefusedBeforeTraining) {
  const WorkFolder folder;
  write_rows("rows", 11, 5);
  for (const char* text : {"snapshot_prefix: 'no/such/x'", "snapshot_prefix: 'rows.txt/x'",
                           "snapshot_prefix: 'no/such/x' snapshot: 0 snapshot_after_train: true"}) {
    const std::string error = solver_error(solver_text(kTypes[0], text));
    EXPECT_NE(error.find("solver.prototxt: snapshot_prefix \""), std::string::npos) << error;
  }
  EXPECT_NO_THROW(make_solver(solver_text(kTypes[0], "snapshot_prefix: 'no/such/x' snapshot: 0")));
}

TEST(Snapshot, IsCountedByUpdatesAndWrittenOnceAtTheEnd) {
  const WorkFolder folder;
  write_rows("rows", 11, 5);
  const auto solver =
      make_solver(solver_text(kTypes[0], "max_iter: 12 snapshot: 5 snapshot_after_train: true"));
  LogLines log;
  solver->solve();
  EXPECT_EQ(log.with("Snapshotting to binary proto file ").size(), 3u);
  for (const char* iter : {"5", "10", "12"}) {
    EXPECT_TRUE(exists(str("s_iter_", iter, ".caffemodel"))) << iter;
    EXPECT_EQ(
        log.with(str("Snapshotting to binary proto file s_iter_", iter, ".caffemodel")).size(), 1u);
    EXPECT_EQ(log.with(str("Snapshotting solver state to binary proto file s_iter_", iter,
                           ".solverstate"))
                  .size(),
              1u);
  }
  const auto at_boundary =
      make_solver(solver_text(kTypes[0], "max_iter: 10 snapshot: 5 snapshot_after_train: true"));
  LogLines second;
  at_boundary->solve();
  EXPECT_EQ(second.with("Snapshotting to ").size(), 2u);
}

}  // namespace
}  // namespace crema
