// MVN: mean and variance taken off each plane or item.
#include <cmath>

#include "io/scratch.h"
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields = "") {
  return "layer { name: \"l\" type: \"MVN\" bottom: \"x\" top: \"y\" mvn_param { " + fields +
         " } }";
}

const std::vector<LayerCase> kCases = {
    {.name = "known_values",
     .layer = layer("eps: 1"),
     .inputs = {{"x", {1, 1, 1, 2}, {1, 3}}},
     .expect = {{"y", {-0.5f, 0.5f}}},
     .check_gradient = false,
     .in_place = true},
    {.name = "across_channels_known_values",
     .layer = layer("eps: 1 across_channels: true"),
     .inputs = {{"x", {1, 2, 1, 1}, {1, 3}}},
     .expect = {{"y", {-0.5f, 0.5f}}},
     .check_gradient = false},
    {.name = "mean_only_known_values",
     .layer = layer("normalize_variance: false"),
     .inputs = {{"x", {1, 1, 1, 2}, {1, 5}}},
     .expect = {{"y", {-2, 2}}}},
    {.name = "three_axes",  // a plane is a row
     .layer = layer("eps: 1"),
     .inputs = {{"x", {1, 2, 2}, {1, 3, 0, 8}}},
     .expect = {{"y", {-0.5f, 0.5f, -0.8f, 0.8f}}},
     .check_gradient = false},
    {.name = "two_axes_across_channels",
     .layer = layer("across_channels: true eps: 1"),
     .inputs = {{"x", {2, 2}, {1, 3, 8, 0}}},
     .expect = {{"y", {-0.5f, 0.5f, 0.8f, -0.8f}}},
     .check_gradient = false},
    {.name = "planes", .layer = layer(), .inputs = {{"x", {2, 3, 3, 2}}}, .in_place = true},
    {.name = "across_channels",
     .layer = layer("across_channels: true"),
     .inputs = {{"x", {2, 3, 2, 2}}}},
    {.name = "mean_only",
     .layer = layer("normalize_variance: false"),
     .inputs = {{"x", {2, 3, 2, 2}}},
     .in_place = true},
};
INSTANTIATE_TEST_SUITE_P(MVN, LayerCases, testing::ValuesIn(kCases), case_name);

TEST(MVNErrors, NameTheRule) {
  expect_error({.name = "bad", .layer = layer(), .inputs = {{"x", {3}}}},
               "must have at least 2 axes");
  expect_error({.name = "bad", .layer = layer("eps: -1"), .inputs = {{"x", {2, 3}}}},
               "eps: must not be negative");
}

TEST(MVN, SaysThatPlanesOfOneValueGiveZeros) {
  const LogLines log;
  const LayerRun run =
      run_layer({.name = "rows", .layer = layer(), .inputs = {{"x", {2, 3}}}, .backward = false});
  EXPECT_EQ(run.blobs.at("y"), std::vector<float>(6, 0));
  ASSERT_FALSE(log.lines.empty());
  EXPECT_EQ(log.lines[0],
            "layer \"l\" (MVN): each plane is a single value, so the top is 0; across_channels: "
            "true normalises over the channels");
}

TEST(Reports, B42_ConstantPictureGivesZeros) {
  const LayerRun run = run_layer({.name = "constant",
                                  .layer = layer(),
                                  .inputs = {{"x", {1, 1, 7, 9}, std::vector<float>(63, 0.1f)}}});
  EXPECT_EQ(run.blobs.at("y"), std::vector<float>(63, 0.0f));
  for (const float g : run.gradients.at("x")) EXPECT_TRUE(std::isfinite(g));
}

}  // namespace
}  // namespace crema
