// LRN across and within channels.
#include <cmath>

#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields) {
  return "layer { name: \"l\" type: \"LRN\" bottom: \"x\" top: \"y\" lrn_param { " + fields +
         " } }";
}

const std::vector<LayerCase> kCases = {
    {.name = "across_known_values",
     .layer = layer("local_size: 3 alpha: 3 beta: 1 k: 2"),
     .inputs = {{"x", {1, 3}, {1, 2, 3}}},
     .expect = {{"y", {1.0f / 7, 2.0f / 16, 3.0f / 15}}}},
    {.name = "across",
     .layer = layer("local_size: 5 alpha: 2 beta: 0.75"),
     .inputs = {{"x", {2, 7, 3, 2}}}},
    {.name = "across_beta_1",
     .layer = layer("local_size: 3 alpha: 1 beta: 0.5 k: 3"),
     .inputs = {{"x", {2, 4, 2, 3}}}},
    {.name = "across_one_spatial_axis",
     .layer = layer("local_size: 3"),
     .inputs = {{"x", {2, 4, 3}}}},
    {.name = "within",
     .layer = layer("local_size: 3 alpha: 4 norm_region: WITHIN_CHANNEL"),
     .inputs = {{"x", {2, 2, 4, 5}}}},
    {.name = "within_ignores_k",
     .layer = layer("local_size: 1 alpha: 3 beta: 1 k: 9 norm_region: WITHIN_CHANNEL"),
     .inputs = {{"x", {1, 1, 1, 2}, {1, 2}}},
     .expect = {{"y", {0.25f, 2.0f / 13}}}},
};
INSTANTIATE_TEST_SUITE_P(LRN, LayerCases, testing::ValuesIn(kCases), case_name);

TEST(LRNErrors, NameTheField) {
  expect_error({.name = "bad", .layer = layer("local_size: 4"), .inputs = {{"x", {1, 3, 2, 2}}}},
               "local_size: must be odd, not 4");
  expect_error({.name = "bad", .layer = layer("local_size: 0"), .inputs = {{"x", {1, 3, 2, 2}}}},
               "local_size: must be odd, not 0");
  expect_error(
      {.name = "bad", .layer = layer("norm_region: WITHIN_CHANNEL"), .inputs = {{"x", {1, 3, 2}}}},
      "must have 4 axes");
  expect_error({.name = "bad", .layer = layer(""), .inputs = {{"x", {3}}}}, "has no channel axis");
}

TEST(Reports, B41_HugeValueLeavesNoTraceInFarChannels) {
  std::vector<float> x(8, 0.0f);
  x[0] = 1e6f;
  check_layer(
      {.name = "huge",
       .layer = layer("local_size: 5 alpha: 1e-4 beta: 0.75"),
       .inputs = {{"x", {1, 8, 1, 1}, x}},
       .expect = {{"y", {static_cast<float>(1e6 * std::pow(1 + 2e7, -0.75)), 0, 0, 0, 0, 0, 0, 0}}},
       .check_gradient = false},
      nullptr);
}

TEST(Reports, B41_WindowWiderThanAllChannels) {
  const double scale = 1 + 61.0 / 61 * (1 + 4 + 9);
  std::vector<float> y;
  for (const double x : {1, 2, 3}) y.push_back(static_cast<float>(x * std::pow(scale, -0.75)));
  check_layer({.name = "wide",
               .layer = layer("local_size: 61 alpha: 61"),
               .inputs = {{"x", {1, 3, 1, 1}, {1, 2, 3}}},
               .expect = {{"y", y}}},
              nullptr);
}

TEST(Reports, B54_InPlaceReluAfterLrnKeepsTheGradient) {
  check_layer({.name = "in_place",
               .layer = layer("local_size: 3 alpha: 2") +
                        R"(layer { name: "r" type: "ReLU" bottom: "y" top: "y" })",
               .inputs = {{.name = "x", .shape = {2, 4, 3, 2}, .draw = Draw::distinct}},
               .step = 5e-3f},
              nullptr);
}

}  // namespace
}  // namespace crema
