// Several ranks that train one net: the steps of one with the joined batch, one log, one snapshot,
// and an end for all when one fails. Each rank is a CPU device, or with CREMA_TEST_DEVICE=gpu a
// card, in a thread of its own.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "base/error.h"
#include "io/solver_state.h"
#include "solver/snapshot.h"
#include "solver/solver_group.h"
#include "solver/solver_harness.h"
#include "test_device.h"

namespace crema {
namespace {

/// A net without batch statistics, of `batch` records for each rank.
std::string net_of(int batch, int test_batch, const std::string& between = "") {
  return str(R"(net_param {
    layer { name: "data" type: "HDF5Data" top: "data" top: "label" include { phase: TRAIN }
            hdf5_data_param { source: "rows.txt" batch_size: )",
             batch, R"( } }
    layer { name: "data" type: "HDF5Data" top: "data" top: "label" include { phase: TEST }
            hdf5_data_param { source: "rows.txt" batch_size: )",
             test_batch, R"( } }
    layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1" param { lr_mult: 1 }
            param { lr_mult: 2 decay_mult: 0 }
            inner_product_param { num_output: 6 weight_filler { type: "xavier" } } })",
             between, R"(
    layer { name: "tanh" type: "TanH" bottom: "ip1" top: "tanh" }
    layer { name: "ip2" type: "InnerProduct" bottom: "tanh" top: "ip2"
            inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "ip2" bottom: "label" top: "loss" } }
    random_seed: 7 snapshot_after_train: false snapshot_prefix: "s" lr_policy: "fixed" display: 1 )");
}

struct Outcome {
  std::vector<float> params, history;
  std::vector<std::vector<double>> scores;
  double loss = 0;
  int iter = 0;
};

SolverOptions options_for(const std::string& resume = "") {
  SolverOptions options;
  options.file = "solver.prototxt";
  options.resume = resume;
  return options;
}

Outcome outcome_of(Solver& solver) {
  Outcome out{.params = all_params(solver),
              .history = all_history(solver),
              .scores = {},
              .loss = solver.smoothed_loss(),
              .iter = solver.iter()};
  if (solver.test_net_count() > 0) out.scores = solver.test_scores(0);
  return out;
}

/// A rank's device: the CPU for all, or a card for each.
std::shared_ptr<Ops> device_of(int rank) { return make_ops(test_device(rank)); }

/// Each rank's outcome after solve().
std::vector<Outcome> train_together(int ranks, const std::string& text,
                                    const SolverOptions& options = options_for()) {
  std::vector<Outcome> all(static_cast<size_t>(ranks));
  const auto work = [&](Solver& solver, int rank) {
    solver.solve();
    all[static_cast<size_t>(rank)] = outcome_of(solver);
  };
  solve_together(parse_solver(text), options,
                 {.ranks = ranks, .make_ops = device_of, .work = work});
  return all;
}

Outcome train_alone(const std::string& text) {
  const std::unique_ptr<Solver> solver = make_solver(text);
  solver->solve();
  return outcome_of(*solver);
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i], b[i], 1e-5 * std::max(1.0F, std::abs(b[i]))) << i;
  }
}

class Ranks : public testing::TestWithParam<const char*> {};

TEST_P(Ranks, StepAsOneWithTheJoinedBatch) {
  const WorkFolder folder;
  write_rows("rows", 24, 5);
  const std::string more = str(" max_iter: 6 test_iter: 4 test_interval: 3 ", GetParam());
  const Outcome alone = train_alone(net_of(8, 4) + more);
  for (const int ranks : {2, 4}) {
    const std::vector<Outcome> all = train_together(ranks, net_of(8 / ranks, 4) + more);
    for (const Outcome& one : all) {
      expect_near(one.params, alone.params);
      EXPECT_EQ(one.params, all[0].params);
      EXPECT_EQ(one.history, all[0].history);
      EXPECT_EQ(one.scores, all[0].scores);
      EXPECT_EQ(one.iter, 6);
    }
    EXPECT_NEAR(all[0].loss, alone.loss, 1e-5);
    ASSERT_EQ(all[0].scores.size(), 1U);
    EXPECT_NEAR(all[0].scores[0][0], alone.scores[0][0], 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Solver, Ranks,
    testing::Values("type: 'SGD' base_lr: 0.1 momentum: 0.9 weight_decay: 0.01",
                    "type: 'SGD' base_lr: 0.1 momentum: 0.9 clip_gradients: 0.5 iter_size: 2",
                    "type: 'Adam' base_lr: 0.01 momentum: 0.9",
                    "type: 'LARS' base_lr: 1 momentum: 0.9 weight_decay: 0.01 larc_eta: 0.1"));

struct SumsCase {
  const char* name;
  int ranks;
  const char* solver;
};

class OverlappedSums : public testing::TestWithParam<SumsCase> {};

TEST_P(OverlappedSums, GiveTheBitsOfSumsAfterBackward) {
  const WorkFolder folder;
  write_rows("rows", 24, 5);
  // Two layers with one weight, in groups of two rates: parts of the gradients are final in another
  // order than they lie in.
  const std::string shared = R"(
    layer { name: "a" type: "InnerProduct" bottom: "ip1" top: "a" param { name: "w" }
            param { lr_mult: 2 } inner_product_param { num_output: 6
            weight_filler { type: "xavier" } } }
    layer { name: "sum" type: "Eltwise" bottom: "ip1" bottom: "a" top: "sum" }
    layer { name: "b" type: "InnerProduct" bottom: "sum" top: "b" param { name: "w" }
            param { lr_mult: 2 } inner_product_param { num_output: 6
            weight_filler { type: "xavier" } } }
    layer { name: "out" type: "Eltwise" bottom: "ip1" bottom: "b" top: "ip1" })";
  const auto [name, ranks, solver] = GetParam();
  const std::string text = net_of(2, 2, shared) + " max_iter: 5 " + solver;
  SolverOptions at_the_end = options_for(), in_parts = options_for();
  at_the_end.overlap_sums = false;
  in_parts.bucket_bytes = 1;  // a part for each parameter
  const std::vector<Outcome> wanted = train_together(ranks, text, at_the_end);
  const std::vector<Outcome> found = train_together(ranks, text, in_parts);
  for (size_t rank = 0; rank < found.size(); ++rank) {
    EXPECT_EQ(found[rank].params, wanted[rank].params) << rank;
    EXPECT_EQ(found[rank].history, wanted[rank].history) << rank;
  }
}

constexpr char kMomentum[] = "type: 'SGD' base_lr: 0.1 momentum: 0.9";
constexpr char kClipped[] =
    "type: 'SGD' base_lr: 0.1 momentum: 0.9 clip_gradients: 0.5 iter_size: 2";
constexpr char kLars[] = "type: 'LARS' base_lr: 1 momentum: 0.9 weight_decay: 0.01 larc_eta: 0.1";

INSTANTIATE_TEST_SUITE_P(
    Ranks, OverlappedSums,
    testing::Values(SumsCase{"two_sgd", 2, kMomentum}, SumsCase{"two_clipped", 2, kClipped},
                    SumsCase{"two_lars", 2, kLars}, SumsCase{"four_sgd", 4, kMomentum},
                    SumsCase{"four_clipped", 4, kClipped}, SumsCase{"four_lars", 4, kLars}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Ranks, ShareATestThatTheyCanShareEvenly) {
  const WorkFolder folder;
  write_rows("rows", 24, 5);
  // Four ranks share nine batches as three: the same 18 records, none twice.
  const std::string more =
      " max_iter: 1 test_iter: 9 test_interval: 1 type: 'SGD' base_lr: 0.1 average_loss: 2";
  const Outcome alone = train_alone(net_of(8, 2) + more);
  const std::vector<Outcome> all = train_together(4, net_of(2, 2) + more);
  for (const Outcome& one : all) EXPECT_NEAR(one.scores[0][0], alone.scores[0][0], 1e-5);
}

TEST(Ranks, WriteOneLogAndOneSnapshot) {
  const WorkFolder folder;
  write_rows("rows", 24, 5);
  const LogLines lines;
  train_together(3, net_of(2, 2) +
                        " max_iter: 2 snapshot: 2 test_iter: 3 test_interval: 2 "
                        "type: 'SGD' base_lr: 0.1");
  for (const char* text : {"Iteration 0, lr", "Iteration 0 (", "Solving ", "Optimization Done.",
                           "Snapshotting to", "Creating Layer ip1", "Iteration 2, Testing net",
                           "Initializing solver from parameters", "Number of HDF5 files"}) {
    const size_t nets = std::string(text).find("Creating") == 0 || text[0] == 'N' ? 2 : 1;
    EXPECT_EQ(lines.with(text).size(), nets) << text;
  }
  EXPECT_TRUE(exists("s_iter_2.caffemodel"));
}

TEST(Ranks, GoOnFromTheirSnapshotBitForBit) {
  const WorkFolder folder;
  write_rows("rows", 22, 5);
  const std::string more =
      " snapshot: 4 test_iter: 2 test_interval: 3 type: 'Adam' base_lr: 0.01 momentum: 0.9 ";
  const std::string drop = " layer { name: 'drop' type: 'Dropout' bottom: 'ip1' top: 'ip1' }";
  const std::vector<Outcome> whole = train_together(2, net_of(3, 2, drop) + more + "max_iter: 8");
  train_together(2, net_of(3, 2, drop) + more + "max_iter: 4");
  const std::vector<Outcome> second = train_together(2, net_of(3, 2, drop) + more + "max_iter: 8",
                                                     options_for("s_iter_4.solverstate"));
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(second[rank].params, whole[rank].params);
    EXPECT_EQ(second[rank].history, whole[rank].history);
    EXPECT_EQ(second[rank].scores, whole[rank].scores);
  }
}

TEST(Ranks, AnotherNumberOfThemGoesOnAtTheSameRecord) {
  const WorkFolder folder;
  write_rows("rows", 22, 5);
  const std::string more = " snapshot: 2 type: 'SGD' base_lr: 0.1 ";
  const Outcome alone = train_alone(net_of(4, 2) + more + "max_iter: 5");
  train_together(2, net_of(2, 2) + more + "max_iter: 2");
  const std::vector<Outcome> all =
      train_together(4, net_of(1, 2) + more + "max_iter: 5", options_for("s_iter_2.solverstate"));
  expect_near(all[3].params, alone.params);
}

TEST(Ranks, JoinTheirRunningStatistics) {
  const WorkFolder folder;
  write_rows("rows", 24, 5);
  const std::string norm = " layer { name: 'bn' type: 'BatchNorm' bottom: 'ip1' top: 'ip1' }";
  const std::string more = " max_iter: 3 snapshot: 3 type: 'SGD' base_lr: 0.1";
  std::vector<std::vector<float>> own(2);
  const auto work = [&](Solver& solver, int rank) {
    solver.step(3);  // and snapshot() joins them
    own[static_cast<size_t>(rank)] = all_params(solver);
  };
  solve_together(parse_solver(net_of(4, 2, norm) + more), options_for(),
                 {.ranks = 2, .make_ops = device_of, .work = work});
  EXPECT_EQ(own[0], own[1]);
  // Without a snapshot they are each rank's own, so that the test above says something.
  solve_together(parse_solver(net_of(4, 2, norm) + " max_iter: 3 type: 'SGD' base_lr: 0.1"),
                 options_for(), {.ranks = 2, .make_ops = device_of, .work = work});
  EXPECT_NE(own[0], own[1]);
}

TEST(Ranks, AllEndWhenOneFails) {
  const WorkFolder folder;
  write_rows("rows", 24, 5);
  const SolverParameter param =
      parse_solver(net_of(2, 2) + " max_iter: 9 type: 'SGD' base_lr: 0.1");
  const auto error = [&](const GroupOptions& group) -> std::string {
    try {
      solve_together(param, options_for(), group);
    } catch (const Error& failure) {
      return failure.what();
    }
    return "no error";
  };
  const auto fails_in_a_step = [](Solver& solver, int rank) {
    solver.step(2);
    require(rank != 2, "the card fell off the bus");
    solver.step(7);
  };
  EXPECT_EQ(error({.ranks = 3, .make_ops = device_of, .work = fails_in_a_step}),
            "GPU 2 of this run: the card fell off the bus");
  const auto no_device = [](int rank) {
    require(rank != 1, "no such GPU");
    return device_of(rank);
  };
  EXPECT_EQ(error({.ranks = 3, .make_ops = no_device}), "GPU 1 of this run: no such GPU");
  const auto no_first = [](int rank) -> std::shared_ptr<Ops> {
    require(rank != 0, "no GPU at all");
    return device_of(rank);
  };
  EXPECT_EQ(error({.ranks = 3, .make_ops = no_first}), "no GPU at all");
}

TEST(Ranks, StopTogetherWhenTheFirstIsAsked) {
  const WorkFolder folder;
  write_rows("rows", 24, 5);
  SolverOptions options = options_for();
  int asked = 0;
  options.take_request = [&asked] {
    return SolverRequest{.stop = ++asked == 3, .snapshot = asked == 2};
  };
  const std::vector<Outcome> all =
      train_together(3, net_of(2, 2) + " max_iter: 50 type: 'SGD' base_lr: 0.1", options);
  for (const Outcome& one : all) EXPECT_EQ(one.iter, 3);
  EXPECT_TRUE(exists("s_iter_2.solverstate"));
}

}  // namespace
}  // namespace crema
