// BN of PSPNet and its kin, and SegNet's.
#include <cmath>

#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields = "") {
  return "layer { name: \"l\" type: \"BN\" bottom: \"x\" top: \"y\" bn_param { " + fields + " } }";
}
const LayerInput kPair = {.name = "x", .shape = {2, 1, 1, 1}, .values = {1, 5}};
const float kOne = 2 / std::sqrt(4 + 1e-5f);

const std::vector<LayerCase> kRunning = {
    {.name = "batch_statistics",
     .layer = layer(),
     .inputs = {kPair},
     .params = {{2}, {1}, {0}, {1}},
     .expect = {{"y", {1 - 2 * kOne, 1 + 2 * kOne}}},
     .params_after = {{2}, {1}, {0.3f}, {1.3f}}},
    {.name = "momentum_of_its_own",
     .layer = layer("momentum: 0.5"),
     .inputs = {kPair},
     .params = {{2}, {1}, {1}, {2}},
     .params_after = {{2}, {1}, {2}, {3}}},
    {.name = "stored_statistics_in_test",
     .layer = layer("eps: 0"),
     .inputs = {kPair},
     .params = {{3}, {1}, {2}, {4}},
     .expect = {{"y", {-0.5f, 5.5f}}},
     .params_after = {{3}, {1}, {2}, {4}},
     .phase = TEST},
    {.name = "frozen",
     .layer = layer("frozen: true eps: 0"),
     .inputs = {kPair},
     .params = {{3}, {1}, {2}, {4}},
     .expect = {{"y", {-0.5f, 5.5f}}},
     .top_gradients = {{"y", {2, 4}}},
     .expect_gradients = {{"x", {3, 6}}},
     .params_after = {{3}, {1}, {2}, {4}}},
    {.name = "pictures", .layer = layer("momentum: 0.95"), .inputs = {{"x", {3, 4, 2, 3}}}},
    {.name = "with_relu",
     .layer = layer() + " layer { name: \"r\" type: \"ReLU\" bottom: \"y\" top: \"z\" }",
     .inputs = {{"x", {3, 4, 2, 3}}},
     .check_gradient = false},
    {.name = "behind_a_convolution_in_test",
     .layer =
         "layer { name: \"c\" type: \"Convolution\" bottom: \"x\" top: \"c\" convolution_param { "
         "num_output: 3 kernel_size: 2 weight_filler { type: \"xavier\" } } } "
         "layer { name: \"l\" type: \"BN\" bottom: \"c\" top: \"y\" }",
     .inputs = {{"x", {2, 2, 4, 4}}},
     .params = {{}, {}, {}, {}, {0.5f, -0.25f, 1}, {0.5f, 2, 1}},
     .phase = TEST,
     .backward = false},
};
INSTANTIATE_TEST_SUITE_P(RunningBn, LayerCases, testing::ValuesIn(kRunning), case_name);

const float kTwo = 2 / std::sqrt(4 + 1e-9f);
const std::vector<LayerCase> kSegNet = {
    {.name = "learn",
     .layer = layer("scale_filler { value: 1 } shift_filler { value: 0.001 }"),
     .inputs = {kPair},
     .params = {{2}, {1}},
     .expect = {{"y", {1 - 2 * kTwo, 1 + 2 * kTwo}}}},
    {.name = "learn_in_test",
     .layer = layer("bn_mode: LEARN"),
     .inputs = {kPair},
     .params = {{2}, {1}},
     .expect = {{"y", {1 - 2 * kTwo, 1 + 2 * kTwo}}},
     .phase = TEST},
    {.name = "inference",
     .layer = layer("bn_mode: INFERENCE"),
     .inputs = {kPair},
     .params = {{2}, {1}},
     .expect = {{"y", {3, 11}}},
     .phase = TEST},
    {.name = "inference_trains",
     .layer = layer("bn_mode: INFERENCE"),
     .inputs = {{"x", {2, 3, 2, 2}}}},
    {.name = "pictures", .layer = layer("bn_mode: LEARN"), .inputs = {{"x", {3, 4, 2, 3}}}},
};
INSTANTIATE_TEST_SUITE_P(SegNetBn, LayerCases, testing::ValuesIn(kSegNet), case_name);

TEST(Bn, Refusals) {
  const std::vector<LayerInput> inputs = {{"x", {2, 3}}};
  expect_error({.layer = layer("eps: -1"), .inputs = inputs}, "eps: must not be negative, got -1");
  expect_error({.layer = layer("momentum: 2"), .inputs = inputs},
               "momentum: must be in 0..1, got 2");
  expect_error({.layer = layer("bn_mode: LEARN frozen: true"), .inputs = inputs},
               "they exclude each other");
  expect_error({.layer = layer(), .inputs = {{"x", {2}}}}, "needs a channel axis");
}

}  // namespace
}  // namespace crema
