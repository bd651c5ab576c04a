// Training in 16 bits: the loss of f32, scaled gradients, steps that are skipped, going on.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "base/philox.h"
#include "io/hdf5.h"
#include "solver/allocations.h"
#include "solver/loss_scale.h"
#include "solver/snapshot.h"
#include "solver/solver_harness.h"
#include "test_device.h"

namespace crema {
namespace {

/// The digits, a row of five pixels in each number.
constexpr uint8_t kGlyphs[10][7] = {{14, 17, 19, 21, 25, 17, 14}, {4, 12, 4, 4, 4, 4, 14},
                                    {14, 17, 1, 2, 4, 8, 31},     {31, 2, 4, 2, 1, 17, 14},
                                    {2, 6, 10, 18, 31, 2, 2},     {31, 16, 30, 1, 1, 17, 14},
                                    {6, 8, 16, 30, 17, 17, 14},   {31, 1, 2, 4, 8, 8, 8},
                                    {14, 17, 17, 14, 17, 17, 14}, {14, 17, 17, 15, 1, 2, 12}};

/// Writes digits.h5 and digits.txt: pictures of 8 x 8, shifted and noisy, and their labels, some of
/// which are wrong, so that the loss does not go to zero.
void write_digits(int count) {
  RandomStream random(5);
  std::vector<float> data, labels;
  for (int i = 0; i < count; ++i) {
    const auto digit = random.below(10), left = random.below(4), top = random.below(2);
    for (uint64_t y = 0; y < 8; ++y) {
      for (uint64_t x = 0; x < 8; ++x) {
        const bool is_inside = y >= top && y < top + 7 && x >= left && x < left + 5;
        const bool is_set = is_inside && (kGlyphs[digit][y - top] >> (4 - (x - left)) & 1) != 0;
        data.push_back((is_set ? 1.0F : 0.0F) + static_cast<float>(random.uniform()) - 0.5F);
      }
    }
    labels.push_back(static_cast<float>(random.below(5) == 0 ? random.below(10) : digit));
  }
  Hdf5File file = Hdf5File::create("digits.h5");
  file.write("data", Shape{count, 1, 8, 8}, data.data());
  file.write("label", Shape{count}, labels.data());
  file.close();
  write_file("digits.txt", "digits.h5\n");
}

std::string digits_solver(const std::string& net_fields = "") {
  return str("net_param { ", net_fields, R"(
    layer { name: "data" type: "HDF5Data" top: "data" top: "label"
            hdf5_data_param { source: "digits.txt" batch_size: 16 } }
    layer { name: "conv1" type: "Convolution" bottom: "data" top: "c1" convolution_param {
            num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
    layer { name: "relu1" type: "ReLU" bottom: "c1" top: "c1" }
    layer { name: "pool1" type: "Pooling" bottom: "c1" top: "p1" pooling_param { kernel_size: 2 stride: 2 } }
    layer { name: "conv2" type: "Convolution" bottom: "p1" top: "c2" convolution_param {
            num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
    layer { name: "bn2" type: "BatchNorm" bottom: "c2" top: "b2" }
    layer { name: "scale2" type: "Scale" bottom: "b2" top: "b2" scale_param { bias_term: true } }
    layer { name: "relu2" type: "ReLU" bottom: "b2" top: "b2" }
    layer { name: "ip1" type: "InnerProduct" bottom: "b2" top: "i1"
            inner_product_param { num_output: 24 weight_filler { type: "xavier" } } }
    layer { name: "relu3" type: "ReLU" bottom: "i1" top: "i1" }
    layer { name: "ip2" type: "InnerProduct" bottom: "i1" top: "i2"
            inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "i2" bottom: "label" top: "loss" } }
  base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: "fixed" max_iter: 300 random_seed: 3
  average_loss: 50 snapshot_after_train: false snapshot_prefix: "s" )");
}

std::unique_ptr<Solver> solver_in(std::optional<DType> type, const std::string& text,
                                  const std::string& resume = "") {
  SolverOptions options;
  options.file = "solver.prototxt";
  options.ops = make_ops(test_device());
  options.precision = type;
  options.resume = resume;
  return std::make_unique<Solver>(parse_solver(text), options);
}

std::optional<std::string> why_not(DType type) {
  return make_ops(test_device())->why_not_precision(type);
}

class TrainsIn : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (const auto reason = why_not(GetParam())) GTEST_SKIP() << *reason;
  }
};

std::string type_name(const testing::TestParamInfo<DType>& info) {
  return info.param == DType::bf16 ? "bf16" : "f16";
}

TEST_P(TrainsIn, TheLossFollowsThatOfF32) {
  const WorkFolder folder;
  write_digits(16 * 300);
  const auto exact = solver_in(DType::f32, digits_solver());
  const auto low = solver_in(GetParam(), digits_solver());
  EXPECT_EQ(low->net().precision(), GetParam());
  for (int window = 0; window < 6; ++window) {
    exact->step(50);
    low->step(50);
    EXPECT_NEAR(low->smoothed_loss(), exact->smoothed_loss(), 0.02 * exact->smoothed_loss())
        << "iterations to " << exact->iter();
  }
  EXPECT_LT(exact->smoothed_loss(), 1.5);  // it learns
  EXPECT_NE(all_params(*exact), all_params(*low));
}

TEST_P(TrainsIn, GoingOnIsAsNeverStopping) {
  const WorkFolder folder;
  write_digits(100);
  const auto whole = solver_in(GetParam(), digits_solver());
  whole->step(9);
  const auto first = solver_in(GetParam(), digits_solver());
  first->step(5);
  const std::string state = first->snapshot();
  const auto second = solver_in(GetParam(), digits_solver(), state);
  EXPECT_EQ(second->loss_scale().value(), first->loss_scale().value());
  EXPECT_EQ(second->loss_scale().steps(), first->loss_scale().steps());
  second->step(4);
  EXPECT_EQ(all_params(*second), all_params(*whole));
  EXPECT_EQ(all_history(*second), all_history(*whole));
}

TEST_P(TrainsIn, RecomputingGivesTheSameBits) {
  const WorkFolder folder;
  write_digits(100);
  const auto plain = solver_in(GetParam(), digits_solver());
  const auto again = solver_in(GetParam(), digits_solver("recompute: true"));
  EXPECT_GT(again->net().memory().recomputed, 0);
  plain->step(4);
  again->step(4);
  EXPECT_EQ(all_params(*again), all_params(*plain));
}

TEST_P(TrainsIn, TestsAndDebugLinesAreOfThatType) {
  const WorkFolder folder;
  write_digits(200);
  const std::string text =
      digits_solver() + " test_iter: 10 test_interval: 1000 test_initialization: false display: 1";
  const auto exact = solver_in(DType::f32, text);
  const auto low = solver_in(GetParam(), text + " debug_info: true");
  EXPECT_EQ(low->test_net(0).precision(), GetParam());
  const LogLines log;
  for (Solver* solver : {exact.get(), low.get()}) {
    solver->step(2);
    solver->test_all();
  }
  const double expected = exact->test_scores(0)[0][0];
  EXPECT_NEAR(low->test_scores(0)[0][0], expected, 0.02 * expected);
  // Of two steps and ten batches of the test net.
  EXPECT_EQ(log.with("[Forward] Layer conv1, top blob c1 data: ").size(), 12U);
  EXPECT_EQ(log.with("[Backward] Layer conv2, bottom blob p1 diff: ").size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Types, TrainsIn, testing::Values(DType::bf16, DType::f16), type_name);

// The simulated GPU's own lists would count, so this one is of the CPU alone.
TEST(PrecisionOnCpu, AnIterationAllocatesNothing) {
  const auto ops = make_ops({});
  if (const auto reason = ops->why_not_precision(DType::bf16)) GTEST_SKIP() << *reason;
  if (!counts_allocations()) GTEST_SKIP() << "this build has another malloc";
  const WorkFolder folder;
  write_digits(160);
  SolverOptions options;
  options.ops = ops;
  options.precision = DType::bf16;
  Solver solver(parse_solver(digits_solver()), options);
  EXPECT_EQ(solver.net().precision(), DType::bf16);
  solver.step(22);
  for (const Allocation& one : allocations_of([&] { solver.step(8); })) {
    EXPECT_FALSE(one.is_ours) << one.bytes << " bytes by " << one.owner << one.stack;
    EXPECT_LE(one.bytes, 4096U) << "by " << one.owner << one.stack;
  }
}

/// In f16 gradients beyond 65504 are infinite.
class OverflowIn : public TrainsIn {};

TEST_P(OverflowIn, SkipsTheStepAndHalvesTheScale) {
  const WorkFolder folder;
  write_digits(100);
  const std::string fields = "global_grad_scale: 16777216 global_grad_scale_adaptive: true";
  const auto solver = solver_in(GetParam(), digits_solver(fields));
  const auto learned = [&] {
    std::vector<float> values;
    for (size_t i = 0; i < solver->net().params().size(); ++i) {
      if (!solver->net().params()[i].learnable) continue;  // statistics move with forward
      const std::vector<float> own = solver->net().param_values(static_cast<int>(i));
      values.insert(values.end(), own.begin(), own.end());
    }
    return values;
  };
  const std::vector<float> before = learned();
  const LogLines log;
  solver->step(1);
  EXPECT_EQ(learned(), before);
  EXPECT_EQ(all_history(*solver), std::vector<float>(all_history(*solver).size()));
  EXPECT_EQ(log.with("Iteration 0: gradients overflow at loss scale 1.67772e+07, the step is "
                     "skipped; the loss scale is 8.38861e+06")
                .size(),
            1U);
  EXPECT_EQ(solver->iter(), 1);
  solver->step(19);
  EXPECT_NE(learned(), before);
  const size_t skipped = log.with("the step is skipped").size();
  EXPECT_EQ(solver->loss_scale().value(), std::ldexp(16777216.0F, -static_cast<int>(skipped)));
  EXPECT_LT(skipped, 16U);
  for (const float value : learned()) ASSERT_TRUE(std::isfinite(value));
}

TEST_P(OverflowIn, AStateKeepsTheScale) {
  const WorkFolder folder;
  write_digits(100);
  const std::string text =
      digits_solver("global_grad_scale: 16777216 global_grad_scale_adaptive: true");
  for (const char* format : {"BINARYPROTO", "HDF5"}) {
    const std::string both = str(text, "snapshot_format: ", format);
    const auto first = solver_in(GetParam(), both);
    first->step(18);
    const float scale = first->loss_scale().value();
    EXPECT_LT(scale, 16777216);
    EXPECT_GT(first->loss_scale().steps(), 0);
    const auto second = solver_in(GetParam(), both, first->snapshot());
    EXPECT_EQ(second->loss_scale().value(), scale) << format;
    EXPECT_EQ(second->loss_scale().steps(), first->loss_scale().steps()) << format;
    first->step(3);
    second->step(3);
    EXPECT_EQ(all_params(*second), all_params(*first)) << format;
  }
}

TEST_P(OverflowIn, ScaledGradientsAreShownAsTheyAre) {
  const WorkFolder folder;
  write_digits(100);
  const auto plain = solver_in(DType::f32, digits_solver("global_grad_scale: 256"));
  const auto scaled = solver_in(GetParam(), digits_solver("global_grad_scale: 256"));
  EXPECT_EQ(plain->loss_scale().value(), 1);
  EXPECT_EQ(scaled->loss_scale().value(), 256);
  plain->step(1);
  scaled->step(1);
  const auto norm = [](const std::vector<float>& v) {
    return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
  };
  const double expected = norm(plain->net().param_gradient(0));
  EXPECT_NEAR(norm(scaled->net().param_gradient(0)), expected, 0.05 * expected);
  EXPECT_EQ(scaled->loss_scale().value(), 256);  // a written scale stays
}

INSTANTIATE_TEST_SUITE_P(Types, OverflowIn, testing::Values(DType::f16), type_name);

NetParameter net_with(const std::string& fields) {
  NetParameter net;
  parse_text(fields, "net", &net);
  return net;
}

TEST(LossScale, IsOneButInF16) {
  for (const DType type : {DType::f32, DType::bf16}) {
    LossScale scale(net_with("global_grad_scale: 64 global_grad_scale_adaptive: true"), type);
    EXPECT_FALSE(scale.is_in_use());
    EXPECT_EQ(scale.value(), 1);
    scale.restore(8, 3);
    EXPECT_EQ(scale.value(), 1);
  }
  EXPECT_EQ(LossScale(net_with("name: 'n'"), DType::f16).value(), LossScale::kFirst);
}

TEST(LossScale, HalvesAndDoubles) {
  LossScale scale(net_with("name: 'n'"), DType::f16);
  scale.overflow();
  EXPECT_EQ(scale.value(), LossScale::kFirst / 2);
  for (int i = 1; i < LossScale::kGrowthInterval; ++i) scale.count_step();
  EXPECT_EQ(scale.value(), LossScale::kFirst / 2);
  scale.count_step();
  EXPECT_EQ(scale.value(), LossScale::kFirst);
  EXPECT_EQ(scale.steps(), 0);
  scale.count_step();
  scale.overflow();
  EXPECT_EQ(scale.steps(), 0);
  scale.restore(LossScale::kLargest, LossScale::kGrowthInterval - 1);
  scale.count_step();
  EXPECT_EQ(scale.value(), LossScale::kLargest);
}

TEST(LossScale, AWrittenOneStaysUnlessItAdapts) {
  LossScale fixed(net_with("global_grad_scale: 100"), DType::f16);
  fixed.overflow();
  for (int i = 0; i < LossScale::kGrowthInterval; ++i) fixed.count_step();
  EXPECT_EQ(fixed.value(), 100);
  LossScale adaptive(net_with("global_grad_scale: 100 global_grad_scale_adaptive: true"),
                     DType::f16);
  adaptive.overflow();
  EXPECT_EQ(adaptive.value(), 50);
}

TEST(LossScale, RefusesWhatCannotHelp) {
  const auto error_of = [](const auto& act) -> std::string {
    try {
      act();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  for (const char* text : {"0", "-1", "nan", "inf"}) {
    EXPECT_NE(error_of([&] {
                const LossScale scale(net_with(str("global_grad_scale: ", text)), DType::f32);
              }).find("global_grad_scale must be above 0, not "),
              std::string::npos)
        << text;
  }
  LossScale scale(net_with("name: 'n'"), DType::f16);
  EXPECT_EQ(error_of([&] {
              for (int i = 0; i < 100; ++i) scale.overflow();
            }),
            "the gradients are not finite, whatever the loss scale");
}

}  // namespace
}  // namespace crema
