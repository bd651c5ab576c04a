// Scale and Bias: along every range of axes, learned and as a second bottom.
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string scale(const std::string& fields, const std::string& bottoms = "bottom: \"x\"") {
  return "layer { name: \"l\" type: \"Scale\" " + bottoms + " top: \"y\" scale_param { " + fields +
         " } }";
}
std::string bias(const std::string& fields, const std::string& bottoms = "bottom: \"x\"") {
  return "layer { name: \"l\" type: \"Bias\" " + bottoms + " top: \"y\" bias_param { " + fields +
         " } }";
}
const std::string kTwo = "bottom: \"x\" bottom: \"s\"";
const std::string kSame = "bottom: \"x\" bottom: \"x\"";

const std::vector<LayerCase> kScale = {
    {.name = "channels",
     .layer = scale("bias_term: true"),
     .inputs = {{"x", {1, 2, 1, 2}, {1, 2, 3, 4}}},
     .params = {{10, 100}, {1, 2}},
     .expect = {{"y", {11, 21, 302, 402}}},
     .in_place = true},
    {.name = "axis_0_known_values",
     .layer = scale("axis: 0"),
     .inputs = {{"x", {2, 2}, {1, 2, 3, 4}}},
     .params = {{10, 100}},
     .expect = {{"y", {10, 20, 300, 400}}}},
    {.name = "two_bottoms_known_values",
     .layer = scale("axis: 0", kTwo),
     .inputs = {{"x", {2, 2}, {1, 2, 3, 4}}, {"s", {2}, {10, 100}}},
     .expect = {{"y", {10, 20, 300, 400}}}},
    {.name = "four_axes",
     .layer = scale("bias_term: true"),
     .inputs = {{"x", {2, 3, 4, 2}}},
     .in_place = true},
    {.name = "axis_0_two_axes",
     .layer = scale("axis: 0 num_axes: 2"),
     .inputs = {{"x", {2, 3, 4}}}},
    {.name = "to_the_last_axis",
     .layer = scale("axis: 1 num_axes: -1"),
     .inputs = {{"x", {2, 3, 2, 2}}}},
    {.name = "last_axis",
     .layer = scale("axis: -1 bias_term: true"),
     .inputs = {{"x", {2, 3, 2, 4}}}},
    {.name = "scalar",
     .layer = scale("num_axes: 0 bias_term: true"),
     .inputs = {{"x", {2, 3, 2, 2}}}},
    {.name = "two_bottoms",
     .layer = scale("axis: 1", kTwo),
     .inputs = {{"x", {2, 3, 4, 2}}, {"s", {3, 4}}},
     .in_place = true},
    {.name = "two_bottoms_with_bias",
     .layer = scale("axis: 0 bias_term: true", kTwo),
     .inputs = {{"x", {2, 3, 2, 2}}, {"s", {2, 3}}}},
    {.name = "one_blob_as_both_bottoms",
     .layer = scale("axis: 0", kSame),
     .inputs = {{"x", {2, 2}, {1, 2, 3, 4}}},
     .expect = {{"y", {1, 4, 9, 16}}},
     .top_gradients = {{"y", {1, 1, 1, 10}}},
     .expect_gradients = {{"x", {2, 4, 6, 80}}}},
};
INSTANTIATE_TEST_SUITE_P(Scale, LayerCases, testing::ValuesIn(kScale), case_name);

const std::vector<LayerCase> kBias = {
    {.name = "channels",
     .layer = bias(""),
     .inputs = {{"x", {1, 2, 1, 2}, {1, 2, 3, 4}}},
     .params = {{10, 100}},
     .expect = {{"y", {11, 12, 103, 104}}},
     .in_place = true},
    {.name = "last_axis", .layer = bias("axis: -1"), .inputs = {{"x", {2, 3, 2, 4}}}},
    {.name = "scalar",
     .layer = bias("num_axes: 0"),
     .inputs = {{"x", {2, 3, 2, 2}}},
     .in_place = true},
    {.name = "two_bottoms",
     .layer = bias("axis: 1", kTwo),
     .inputs = {{"x", {2, 3, 4, 2}}, {"s", {3, 4}}},
     .in_place = true},
    {.name = "one_blob_as_both_bottoms",
     .layer = bias("axis: 0", kSame),
     .inputs = {{"x", {2, 2}, {1, 2, 3, 4}}},
     .expect = {{"y", {2, 4, 6, 8}}},
     .top_gradients = {{"y", {1, 1, 1, 10}}},
     .expect_gradients = {{"x", {2, 2, 2, 20}}}},
};
INSTANTIATE_TEST_SUITE_P(Bias, LayerCases, testing::ValuesIn(kBias), case_name);

TEST(ScaleErrors, NameTheAxes) {
  expect_error({.name = "bad", .layer = scale("axis: 2"), .inputs = {{"x", {2, 3}}}},
               "axis: 2 does not exist");
  expect_error({.name = "bad", .layer = scale("num_axes: 2"), .inputs = {{"x", {2, 3}}}},
               "num_axes: 2 axes from axis 1 on reach beyond the bottom of shape 2 3");
  expect_error({.name = "bad", .layer = scale("num_axes: -2"), .inputs = {{"x", {2, 3}}}},
               "num_axes: must be -1 (to the last axis) or more");
  expect_error(
      {.name = "bad", .layer = scale("axis: 0", kTwo), .inputs = {{"x", {2, 3}}, {"s", {3}}}},
      "bottom \"s\" of shape 3 must have the sizes of bottom \"x\" of shape 2 3 from axis 0 on");
}

TEST(BiasErrors, NameTheAxes) {
  expect_error({.name = "bad", .layer = bias("axis: -3"), .inputs = {{"x", {2, 3}}}},
               "axis: -3 does not exist");
  expect_error({.name = "bad", .layer = bias("", kTwo), .inputs = {{"x", {2, 3}}, {"s", {3, 4}}}},
               "bottom \"s\" of shape 3 4 must have the sizes of bottom \"x\"");
}

}  // namespace
}  // namespace crema
