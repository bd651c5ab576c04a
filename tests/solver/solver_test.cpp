// The loop: what is shown and when, averages, tests, gradients over several batches, sharing.
#include "solver/solver.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "base/error.h"
#include "base/file.h"
#include "io/hdf5.h"
#include "solver/solver_harness.h"
#include "test_device.h"

namespace crema {
namespace {

TEST(Solver, ShowsEachDisplayAsParsersExpect) {
  const WorkFolder folder;
  write_rows("rows", 8, 3);
  const auto solver = make_solver(regression(4, "max_iter: 6 display: 2"));
  LogLines log;
  solver->solve();
  EXPECT_EQ(log.with("Solving line").size(), 1u);
  EXPECT_EQ(log.with("Learning Rate Policy: fixed").size(), 1u);
  const std::vector<std::string> shown = log.with("iters), loss = ");
  ASSERT_EQ(shown.size(), 3u);
  const std::string number = "[-+0-9.e]+";
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::regex_match(shown[static_cast<size_t>(i)],
                                 std::regex(str("Iteration ", 2 * i, " \\(", number, " iter/s, ",
                                                number, "s/2 iters\\), loss = ", number))))
        << shown[static_cast<size_t>(i)];
    EXPECT_EQ(log.with(str("Iteration ", 2 * i, ", lr = 0.05")).size(), 1u);
  }
  EXPECT_EQ(shown[0].find("(0 iter/s, "), 12u) << shown[0];  // none has passed yet
  EXPECT_EQ(shown[1].find("(0 iter/s, "), std::string::npos) << shown[1];
  const std::vector<std::string> outputs = log.with("Train net output #");
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_TRUE(
      std::regex_match(outputs[0], std::regex(str("    Train net output #0: loss = (", number,
                                                  ") \\(\\* 1 = ", number, " loss\\)"))))
      << outputs[0];
  // The extra forward at the end has no rate in its line.
  EXPECT_EQ(log.with("Iteration 6, loss = ").size(), 1u);
  EXPECT_EQ(log.all().back(), "Optimization Done.");
}

TEST(Solver, CapsLongOutputs) {
  const WorkFolder folder;
  write_rows("rows", 4, 40);
  const std::string net =
      str("net_param { ", data_layer("data", "", 2),
          "layer { name: 'x' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 1 } } } ",
          kPredict, kLoss, "} ", kFixed, "display: 1 max_iter: 1");
  // a: 80 values that nobody reads
  std::string with_unused = net;
  with_unused.replace(
      with_unused.find("layer { name: 'x'"), 0,
      "layer { name: 'a' type: 'DummyData' top: 'a' dummy_data_param { shape { dim: 80 } } } ");
  const auto solver = make_solver(with_unused);
  LogLines log;
  solver->step(1);
  EXPECT_EQ(log.with(": a = ").size(), 32u);
  EXPECT_EQ(log.with("The first 32 of 80 values of \"a\"").size(), 1u);
  EXPECT_EQ(log.with("Train net output #80: loss = ").size(), 1u);
  EXPECT_EQ(log.with("Train net output #81: x = ").size(), 1u);
}

TEST(Solver, DebugInfoShowsTheLayersOfTheFileAlone) {
  const WorkFolder folder;
  const auto solver = make_solver(
      str("net_param { layer { name: 'x' type: 'DummyData' top: 'x' top: 't' dummy_data_param { "
          "shape { "
          "dim: 2 dim: 8 dim: 6 dim: 6 } shape { dim: 2 dim: 1 } data_filler { type: 'gaussian' } "
          "data_filler { value: 1 } } } "
          "layer { name: 'conv' type: 'Convolution' bottom: 'x' top: 'conv' convolution_param { "
          "num_output: 16 kernel_size: 3 weight_filler { type: 'xavier' } } } "
          "layer { name: 'ip' type: 'InnerProduct' bottom: 'conv' top: 'ip' param { name: 'shared' "
          "} inner_product_param { num_output: 1 weight_filler { type: 'xavier' } } } "
          "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 't' top: 'loss' } } ",
          kFixed, "max_iter: 1 display: 1 debug_info: true"));
  ASSERT_NE(solver->net().layer_index("conv"), 1) << "no step between layouts, nothing is tested";
  LogLines log;
  solver->step(1);
  EXPECT_EQ(log.with("[Forward] Layer ").size(), 2u + 3 + 3 + 1);
  EXPECT_EQ(log.with("[Backward] Layer ").size(), 2u + 3 + 1);
  for (const char* direction : {"[Forward]", "[Backward]"}) {
    EXPECT_EQ(log.with(str(direction, " Layer ip, param blob shared d")).size(), 1u);
    EXPECT_EQ(log.with(str(direction, " Layer ip, param blob 1 d")).size(), 1u);
  }
}

TEST(Solver, AveragesTheLossOverAWindowThatStartsAnewAtEachStep) {
  const WorkFolder folder;
  write_rows("rows", 7, 3);
  const auto plain = make_solver(regression(1));
  const auto smooth = make_solver(regression(1, "average_loss: 5"));
  std::vector<double> losses;
  for (int i = 0; i < 14; ++i) {
    plain->step(1);
    losses.push_back(plain->smoothed_loss());
  }
  const auto mean = [&](int from, int to) {
    double sum = 0;
    for (int i = from; i < to; ++i) sum += losses[static_cast<size_t>(i)];
    return sum / (to - from);
  };
  smooth->step(3);
  EXPECT_NEAR(smooth->smoothed_loss(), mean(0, 3), 1e-6);
  smooth->step(7);
  EXPECT_NEAR(smooth->smoothed_loss(), mean(5, 10), 1e-6);
  smooth->step(2);
  EXPECT_NEAR(smooth->smoothed_loss(), mean(10, 12), 1e-6);
}

TEST(Solver, ShowsTheMeanLossOverIterSize) {
  const WorkFolder folder;
  write_rows("rows", 8, 3);
  const auto parts = make_solver(regression(4, "iter_size: 2"));
  const auto whole = make_solver(regression(8));
  parts->step(1);
  whole->step(1);
  EXPECT_NEAR(parts->smoothed_loss(), whole->smoothed_loss(), 1e-6);
}

struct Type {
  const char* name;
  const char* fields;
};
constexpr Type kTypes[] = {
    {"SGD", "momentum: 0.9"},      {"Nesterov", "momentum: 0.9"}, {"AdaGrad", ""},
    {"RMSProp", "rms_decay: 0.9"}, {"AdaDelta", "momentum: 0.9"}, {"Adam", "momentum: 0.9"}};

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    largest = std::max(largest, std::abs(double{a[i]} - b[i]));
  return largest;
}

TEST(Solver, IterSizeIsALargerBatchForEverySolverType) {
  for (const Type& type : kTypes) {
    const WorkFolder folder;
    write_rows("rows", 16, 3);
    const std::string fields =
        str("weight_decay: 0.1 type: '", type.name, "' ", type.fields, " delta: 1e-4");
    const auto parts = make_solver(regression(4, fields + " iter_size: 2"));
    const auto whole = make_solver(regression(8, fields));
    parts->step(6);
    whole->step(6);
    EXPECT_LT(largest_difference(all_params(*parts), all_params(*whole)), 1e-5) << type.name;
  }
}

TEST(Solver, IterSizeLeavesTheBatchOfBatchNormAlone) {
  const WorkFolder folder;
  write_rows("rows", 16, 3);
  const auto net = [](int batch, const char* more) {
    return str("net_param { ", data_layer("data", "", batch), kPredict,
               "layer { name: 'bn' type: 'BatchNorm' bottom: 'ip' top: 'ip' } ", kLoss, "} ",
               kFixed, more);
  };
  const auto parts = make_solver(net(4, "max_iter: 9 iter_size: 2"));
  const auto whole = make_solver(net(8, "max_iter: 9"));
  parts->step(3);
  whole->step(3);
  EXPECT_GT(largest_difference(all_params(*parts), all_params(*whole)), 1e-4);
  // The last parameter is the weight of the running averages: f = f * 0.999 + 1 for each forward.
  double expected = 0;
  for (int i = 0; i < 6; ++i) expected = expected * 0.999 + 1;
  EXPECT_NEAR(all_params(*parts).back(), expected, 1e-4);
}

std::string shared_pair(const char* second) {
  return str(
      "layer { name: 'a' type: 'InnerProduct' bottom: 'x1' top: 'a' param { name: 'w' lr_mult: 2 } "
      "inner_product_param { num_output: 1 bias_term: false weight_filler { value: 0.3 } } } ",
      "layer { name: 'b' type: 'InnerProduct' bottom: 'x2' top: 'b' param { name: 'w' ", second,
      " } inner_product_param { num_output: 1 bias_term: false } } ");
}

constexpr const char* kHalves =
    "layer { name: 'data' type: 'HDF5Data' top: 'data' top: 'label' hdf5_data_param { source: "
    "'rows.txt' "
    "batch_size: 4 } } "
    "layer { name: 'cut' type: 'Slice' bottom: 'data' top: 'x1' top: 'x2' slice_param { axis: 0 } "
    "} "
    "layer { name: 'cut2' type: 'Slice' bottom: 'label' top: 'y1' top: 'y2' slice_param { axis: 0 "
    "} } ";

TEST(Solver, UpdatesASharedParameterOnce) {
  const WorkFolder folder;
  write_rows("rows", 12, 3);
  const std::string fields =
      "base_lr: 0.05 lr_policy: 'fixed' momentum: 0.9 weight_decay: 0.1 max_iter: 9 "
      "snapshot_after_train: false";
  const auto shared = make_solver(
      str("net_param { ", kHalves, shared_pair("lr_mult: 2"),
          "layer { name: 'la' type: 'EuclideanLoss' bottom: 'a' bottom: 'y1' top: 'la' } "
          "layer { name: 'lb' type: 'EuclideanLoss' bottom: 'b' bottom: 'y2' top: 'lb' } } ",
          fields));
  // On the stacked batch the divisor is twice as large.
  const auto stacked = make_solver(
      str("net_param { ", data_layer("data", "", 4),
          "layer { name: 'a' type: 'InnerProduct' bottom: 'data' top: 'a' param { lr_mult: 2 } "
          "inner_product_param { num_output: 1 bias_term: false weight_filler { value: 0.3 } } } "
          "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'a' bottom: 'label' top: 'loss' "
          "loss_weight: 2 } } ",
          fields));
  shared->step(3);
  stacked->step(3);
  EXPECT_LT(largest_difference(all_params(*shared), all_params(*stacked)), 1e-6);
  EXPECT_EQ(shared->updater().history().size(), 1u);
  EXPECT_LT(largest_difference(all_history(*shared), all_history(*stacked)), 1e-6);
}

TEST(Solver, SharedMultipliersMustAgree) {
  const WorkFolder folder;
  write_rows("rows", 12, 3);
  const auto text = [](const char* second) {
    return str("net_param { ", kHalves, shared_pair(second),
               "layer { name: 'la' type: 'EuclideanLoss' bottom: 'a' bottom: 'y1' top: 'la' } "
               "layer { name: 'lb' type: 'EuclideanLoss' bottom: 'b' bottom: 'y2' top: 'lb' } } ",
               kFixed);
  };
  EXPECT_NO_THROW(make_solver(text("lr_mult: 2")));
  EXPECT_NO_THROW(make_solver(text("")));
  const std::string error = solver_error(text("lr_mult: 1"));
  EXPECT_NE(error.find("\"b\""), std::string::npos) << error;
  EXPECT_NE(error.find("lr_mult"), std::string::npos) << error;
}

/// Caffe's lines for each batch of a test.
TEST(Solver, DebugInfoShowsTestsToo) {
  const WorkFolder folder;
  write_rows("rows", 4, 3);
  const auto solver =
      make_solver(regression(4, "debug_info: true test_iter: 3 test_interval: 2 display: 0"));
  LogLines log;
  solver->step(1);
  EXPECT_EQ(log.with("[Forward] Layer loss, top blob loss data: ").size(), 3U);
  EXPECT_TRUE(log.with("[Backward]").empty());
}

TEST(Solver, AveragesATestAndGoesOnWhereItEnded) {
  const WorkFolder folder;
  write_rows("rows", 4, 1);
  // Ten test records, each its own number.
  std::vector<float> numbers, labels(10, 0);
  for (int i = 0; i < 10; ++i) numbers.push_back(static_cast<float>(i));
  Hdf5File file = Hdf5File::create("ten.h5");
  file.write("data", Shape{10, 1}, numbers.data());
  file.write("label", Shape{10, 1}, labels.data());
  file.close();
  write_file("ten.txt", "ten.h5\n");
  const auto solver = make_solver(str(
      "net_param { ", data_layer("data", "include { phase: TRAIN }", 2),
      "layer { name: 'data' type: 'HDF5Data' top: 'data' top: 'label' include { phase: TEST } "
      "hdf5_data_param { "
      "source: 'ten.txt' batch_size: 4 } } ",
      kPredict, kLoss,
      "layer { name: 'mean' type: 'Reduction' bottom: 'data' top: 'mean' include { phase: TEST } "
      "reduction_param { operation: MEAN } } } ",
      kFixed, "max_iter: 4 test_iter: 3 test_interval: 2 test_compute_loss: true"));
  LogLines log;
  solver->step(2);
  ASSERT_EQ(solver->test_scores(0).size(), 2u);  // loss, mean
  EXPECT_NEAR(solver->test_scores(0)[1][0], (1.5 + 5.5 + (8 + 9 + 0 + 1) / 4.0) / 3, 1e-6);
  EXPECT_EQ(log.with("Iteration 0, Testing net (#0)").size(), 1u);
  EXPECT_EQ(log.with("Test loss: ").size(), 1u);
  EXPECT_EQ(log.with("    Test net output #0: loss = ").size(), 1u);
  EXPECT_EQ(log.with("    Test net output #1: mean = 3.83333").size(), 1u);
  solver->step(1);
  EXPECT_NEAR(solver->test_scores(0)[1][0], (3.5 + 7.5 + (0 + 1 + 2 + 3) / 4.0) / 3, 1e-6);
  EXPECT_EQ(log.with("Iteration 2, Testing net (#0)").size(), 1u);
}

TEST(Solver, RefusesToAverageAnOutputWhoseSizeFollowsTheData) {
  const WorkFolder folder;
  write_rows("rows", 4, 1);
  const std::vector<float> numbers(8, 2), chosen = {1, 1, 0, 1, 1, 0, 0, 0};
  Hdf5File file = Hdf5File::create("chosen.h5");
  file.write("data", Shape{8, 1}, numbers.data());
  file.write("label", Shape{8, 1}, chosen.data());
  file.close();
  write_file("chosen.txt", "chosen.h5\n");
  const auto solver = make_solver(
      str("net_param { ", data_layer("data", "include { phase: TRAIN }", 2),
          "layer { name: 'data' type: 'HDF5Data' top: 'data' top: 'label' include { phase: TEST } "
          "hdf5_data_param { source: 'chosen.txt' batch_size: 4 } } "
          "layer { name: 'f' type: 'Filter' bottom: 'data' bottom: 'label' top: 'few' include { "
          "phase: TEST } } ",
          kPredict, kLoss, "} ", kFixed, "max_iter: 4 test_iter: 2 test_interval: 2"));
  try {
    solver->step(1);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "output \"few\" has 1 values in this batch and had 3 before: there is no mean over "
        "batches; a Silence layer hides it");
  }
}

TEST(Solver, TestsWithTheWeightsAsTheyAre) {
  const WorkFolder folder;
  write_rows("rows", 4, 3);
  const auto solver =
      make_solver(regression(4, "test_iter: 1 test_interval: 100 test_initialization: false"));
  LogLines log;
  solver->step(3);
  EXPECT_TRUE(log.with("Testing net").empty());
  solver->test_all();
  const double before = solver->test_scores(0)[0][0];
  EXPECT_NEAR(before, solver->net().forward(), 1e-6);
  solver->step(1);
  solver->test_all();
  EXPECT_LT(solver->test_scores(0)[0][0], before);
}

/// As in public solvers that switch tests off without taking the net's TEST layers away.
TEST(Solver, RunsNoBatchOfATestOfZeroIterations) {
  const WorkFolder folder;
  write_rows("rows", 4, 3);
  const std::string fields = "test_iter: 0 test_interval: 1 test_compute_loss: true ";
  const auto solver = make_solver(regression(4, fields));
  LogLines log;
  solver->step(2);
  EXPECT_EQ(log.with("Testing net (#0)").size(), 2u);
  EXPECT_TRUE(log.with("Test ").empty());
  EXPECT_NE(solver_error(regression(4, fields + "keep_best: 'loss'")).find("test_iter is 0"),
            std::string::npos);
}

}  // namespace
}  // namespace crema
