// BatchNorm: batch and stored statistics, their running sums, refusals.
#include <cmath>

#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields = "", const std::string& more = "") {
  return "layer { name: \"l\" type: \"BatchNorm\" bottom: \"x\" top: \"y\" " + more +
         " batch_norm_param { " + fields + " } }";
}

const float kOne = 1 / std::sqrt(1 + 1e-5f);

const std::vector<LayerCase> kCases = {
    {.name = "train_known_values",
     .layer = layer("moving_average_fraction: 0.5"),
     .inputs = {{"x", {2, 1}, {1, 3}}},
     .params = {{4}, {6}, {2}},
     .expect = {{"y", {-kOne, kOne}}},
     .params_after = {{4}, {5}, {2}},
     .check_gradient = false,
     .in_place = true,
     .exact_repeat = true},
    {.name = "train_four_axes",
     .layer = layer(),
     .inputs = {{"x", {3, 4, 3, 2}}},
     .in_place = true},
    {.name = "train_five_axes", .layer = layer("eps: 0.01"), .inputs = {{"x", {2, 3, 2, 2, 2}}}},
    {.name = "train_stored_statistics",
     .layer = layer("use_global_stats: true"),
     .inputs = {{"x", {2, 2, 2, 2}}},
     .params = {{2, -1}, {4, 8}, {2}},
     .params_after = {{2, -1}, {4, 8}, {2}},
     .in_place = true},
    {.name = "test_stored_statistics",
     .layer = layer("eps: 0"),
     .inputs = {{"x", {1, 2}, {3, 5}}},
     .params = {{2, 2}, {8, 2}, {2}},
     .expect = {{"y", {1, 4}}},
     .params_after = {{2, 2}, {8, 2}, {2}},
     .phase = TEST},
    {.name = "test_batch_statistics",
     .layer = layer("use_global_stats: false"),
     .inputs = {{"x", {2, 1}, {1, 3}}},
     .expect = {{"y", {-kOne, kOne}}},
     .params_after = {{2}, {2}, {1}},
     .phase = TEST,
     .check_gradient = false},
    {.name = "scale_bias_known_values",
     .layer = layer("scale_bias: true moving_average_fraction: 0.5"),
     .inputs = {{"x", {2, 1}, {1, 3}}},
     .params = {{4}, {6}, {2}, {2}, {5}},
     .expect = {{"y", {5 - 2 * kOne, 5 + 2 * kOne}}},
     .params_after = {{4}, {5}, {2}, {2}, {5}},
     .check_gradient = false,
     .in_place = true},
    {.name = "scale_bias_train",
     .layer = layer("scale_bias: true"),
     .inputs = {{"x", {3, 4, 3, 2}}},
     .in_place = true},
    {.name = "scale_bias_stored_statistics",
     .layer = layer("scale_bias: true use_global_stats: true"),
     .inputs = {{"x", {2, 2, 2, 2}}},
     .params = {{2, -1}, {4, 8}, {2}, {1.5f, -2}, {1, 0.5f}}},
    {.name = "scale_bias_test",
     .layer = layer("scale_bias: true eps: 0"),
     .inputs = {{"x", {1, 2}, {3, 5}}},
     .params = {{2, 2}, {8, 2}, {2}, {3, 0.5f}, {0, 1}},
     .expect = {{"y", {3, 3}}},
     .phase = TEST},
    {.name = "scale_bias_with_relu",
     .layer =
         layer("scale_bias: true") + R"(layer { name: "r" type: "ReLU" bottom: "y" top: "y" })",
     .inputs = {{"x", {3, 2, 3, 2}}},
     .step = 1e-3f},
    {.name = "scale_bias_folds_into_the_convolution",
     .layer = R"(layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param {
                 num_output: 2 kernel_size: 2 } }
                 layer { name: "l" type: "BatchNorm" bottom: "c" top: "y"
                         batch_norm_param { scale_bias: true } })",
     .inputs = {{"x", {2, 3, 4, 4}}},
     .phase = TEST,
     .backward = false},
    {.name = "absorbs_relu",
     .layer = layer() + R"(layer { name: "r" type: "ReLU" bottom: "y" top: "y" })",
     .inputs = {{"x", {3, 2, 3, 2}}},
     .step = 1e-3f},
};
INSTANTIATE_TEST_SUITE_P(BatchNorm, LayerCases, testing::ValuesIn(kCases), case_name);

TEST(BatchNormErrors, StatisticsDoNotLearn) {
  expect_error(
      {.name = "bad", .layer = layer("", "param { lr_mult: 1 }"), .inputs = {{"x", {2, 3}}}},
      "lr_mult: must be 0");
  expect_error({.name = "bad", .layer = layer("eps: -1"), .inputs = {{"x", {2, 3}}}},
               "eps: must not be negative");
}

TEST(BatchNorm, ScaleBiasIsAScaleLayerBehindIt) {
  const std::string own =
      layer("scale_bias: true scale_filler { value: 2 } bias_filler { value: 1 }");
  const std::string two =
      layer() +
      R"(layer { name: "s" type: "Scale" bottom: "y" top: "z" scale_param { bias_term: true
                   filler { value: 2 } bias_filler { value: 1 } } })";
  LayerCase test{.name = "own", .layer = own, .inputs = {{"x", {3, 2, 2, 2}}}};
  const LayerRun one = run_layer(test);
  test.layer = two;
  const LayerRun other = run_layer(test);
  ASSERT_EQ(one.params.size(), 5u);
  ASSERT_EQ(other.params.size(), 5u);
  EXPECT_EQ(one.params, other.params);
  EXPECT_TRUE(values_near(one.blobs.at("y"), other.blobs.at("z"), 1e-5f));
}

TEST(BatchNormErrors, SpecsOfScaleAndBias) {
  const std::string still = "param { lr_mult: 0 } ";
  expect_error({.name = "bad",
                .layer = layer("", still + still + still + "param { }"),
                .inputs = {{"x", {2, 3}}}},
               "4 are given, but BatchNorm has 3 parameters (5 with scale_bias)");
  const LayerRun run = run_layer(
      {.name = "specs",
       .layer = layer("scale_bias: true",
                      still + still + still + "param { lr_mult: 2 } param { lr_mult: 3 }"),
       .inputs = {{"x", {2, 1}, {1, 3}}}});
  EXPECT_EQ(run.params.size(), 5u);
}

TEST(Reports, B61_StoredStatisticsInTrainStayAndWarnWhenEmpty) {
  testing::internal::CaptureStderr();
  const LayerRun run = run_layer({.name = "frozen",
                                  .layer = layer("use_global_stats: true"),
                                  .inputs = {{"x", {4, 2}}},
                                  .params = {{0, 0}, {0, 0}, {0}}},
                                 {.forwards = 3});
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("use_global_stats"), std::string::npos) << log;
  EXPECT_EQ(log.find("use_global_stats"), log.rfind("use_global_stats is true")) << log;
  EXPECT_EQ(run.params[0], std::vector<float>({0, 0}));
  EXPECT_EQ(run.params[2], std::vector<float>({0}));
}

TEST(Reports, S08_OneAxisIsOneChannel) {
  const LayerRun run = run_layer({.name = "one_axis",
                                  .layer = layer(),
                                  .inputs = {{"x", {2}, {1, 3}}},
                                  .params = {{0}, {0}, {0}}});
  EXPECT_TRUE(values_near(run.blobs.at("y"), {-kOne, kOne}, 1e-5f));
  EXPECT_EQ(run.params[0], std::vector<float>({2}));
}

TEST(Reports, S11_ThreeParamBlocksAreNeverLearned) {
  const LayerRun run = run_layer(
      {.name = "specs",
       .layer = layer("", "param { lr_mult: 1 } param { lr_mult: 1 } param { lr_mult: 1 }"),
       .inputs = {{"x", {2, 1}, {1, 3}}}});
  EXPECT_EQ(run.params[2], std::vector<float>({1}));
}

}  // namespace
}  // namespace crema
