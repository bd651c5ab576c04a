// Concat and Slice: every axis, both layouts, the older fields, one blob alone, refusals.
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string concat(const std::string& fields, int bottoms = 2) {
  std::string text = "layer { name: \"l\" type: \"Concat\" top: \"y\" ";
  for (int i = 0; i < bottoms; ++i) text += str("bottom: \"", static_cast<char>('a' + i), "\" ");
  return text + "concat_param { " + fields + " } }";
}

std::string slice(const std::string& fields, int tops = 2) {
  std::string text = "layer { name: \"l\" type: \"Slice\" bottom: \"x\" ";
  for (int i = 0; i < tops; ++i) text += str("top: \"", static_cast<char>('a' + i), "\" ");
  return text + "slice_param { " + fields + " } }";
}

const std::vector<LayerCase> kConcat = {
    {.name = "channels",
     .layer = concat("", 3),
     .inputs = {{"a", {2, 3, 4, 5}}, {"b", {2, 1, 4, 5}}, {"c", {2, 16, 4, 5}}},
     .shapes = {{"y", {2, 20, 4, 5}}}},
    {.name = "aligned_channels",
     .layer = concat(""),
     .inputs = {{"a", {2, 16, 2, 2}}, {"b", {2, 32, 2, 2}}}},
    {.name = "channels_of_three_axes",
     .layer = concat(""),
     .inputs = {{"a", {2, 3, 4}}, {"b", {2, 2, 4}}},
     .shapes = {{"y", {2, 5, 4}}}},
    {.name = "last_of_three_axes",
     .layer = concat("axis: 2"),
     .inputs = {{"a", {2, 3, 4}}, {"b", {2, 3, 1}}}},
    {.name = "samples",
     .layer = concat("axis: 0"),
     .inputs = {{"a", {2, 3, 2, 2}}, {"b", {1, 3, 2, 2}}}},
    {.name = "rows",
     .layer = concat("axis: 2"),
     .inputs = {{"a", {2, 3, 2, 3}}, {"b", {2, 3, 3, 3}}},
     .shapes = {{"y", {2, 3, 5, 3}}}},
    {.name = "last_axis",
     .layer = concat("axis: -1"),
     .inputs = {{"a", {2, 3, 2, 3}}, {"b", {2, 3, 2, 1}}}},
    {.name = "known_values",
     .layer = concat("concat_dim: 1"),
     .inputs = {{"a", {2, 1}, {1, 2}}, {"b", {2, 2}, {3, 4, 5, 6}}},
     .expect = {{"y", {1, 3, 4, 2, 5, 6}}},
     .top_gradients = {{"y", {1, 2, 3, 4, 5, 6}}},
     .expect_gradients = {{"a", {1, 4}}, {"b", {2, 3, 5, 6}}}},
    {.name = "one_bottom", .layer = concat("", 1), .inputs = {{"a", {2, 3, 2}}}},
    {.name = "same_blob_twice",
     .layer = "layer { name: \"l\" type: \"Concat\" top: \"y\" bottom: \"a\" bottom: \"a\" }",
     .inputs = {{"a", {2, 3}}}},
};
INSTANTIATE_TEST_SUITE_P(Concat, LayerCases, testing::ValuesIn(kConcat), case_name);

const std::vector<LayerCase> kSlice = {
    {.name = "even_channels",
     .layer = slice("", 3),
     .inputs = {{"x", {2, 6, 3, 4}}},
     .shapes = {{"a", {2, 2, 3, 4}}}},
    {.name = "points",
     .layer = slice("slice_point: 1 slice_point: 4", 3),
     .inputs = {{"x", {2, 7, 3, 3}}},
     .shapes = {{"a", {2, 1, 3, 3}}, {"b", {2, 3, 3, 3}}, {"c", {2, 3, 3, 3}}}},
    {.name = "channels_of_three_axes", .layer = slice(""), .inputs = {{"x", {2, 6, 4}}}},
    {.name = "last_of_three_axes", .layer = slice("axis: 2"), .inputs = {{"x", {2, 3, 4}}}},
    {.name = "samples", .layer = slice("axis: 0"), .inputs = {{"x", {4, 3, 2, 2}}}},
    {.name = "rows", .layer = slice("axis: 2 slice_point: 1"), .inputs = {{"x", {2, 3, 3, 2}}}},
    {.name = "last_axis", .layer = slice("axis: -1"), .inputs = {{"x", {2, 3, 2, 4}}}},
    {.name = "known_values",
     .layer = slice("slice_dim: 1 slice_point: 1"),
     .inputs = {{"x", {2, 3}, {1, 2, 3, 4, 5, 6}}},
     .expect = {{"a", {1, 4}}, {"b", {2, 3, 5, 6}}},
     .top_gradients = {{"a", {1, 2}}, {"b", {3, 4, 5, 6}}},
     .expect_gradients = {{"x", {1, 3, 4, 2, 5, 6}}}},
    {.name = "one_top", .layer = slice("", 1), .inputs = {{"x", {2, 3, 2}}}},
    {.name = "a_top_without_gradient",
     .layer = slice("slice_point: 1"),
     .inputs = {{"x", {1, 3}, {1, 2, 3}}},
     .top_gradients = {{"b", {5, 6}}},
     .expect_gradients = {{"x", {0, 5, 6}}},
     .no_loss = {"a"}},
};
INSTANTIATE_TEST_SUITE_P(Slice, LayerCases, testing::ValuesIn(kSlice), case_name);

TEST(Concat, Refusals) {
  expect_error(
      {.layer = concat(""), .inputs = {{"a", {2, 3, 4}}, {"b", {2, 3, 5}}}},
      "bottom \"b\" of shape 2 3 5 must be like bottom \"a\", 2 3 4, on all axes but axis 1");
  expect_error({.layer = concat(""), .inputs = {{"a", {2, 3}}, {"b", {2, 3, 1}}}}, "must be like");
  expect_error({.layer = concat("axis: 1 concat_dim: 1"), .inputs = {{"a", {2, 3}}, {"b", {2, 3}}}},
               "axis and concat_dim exclude each other");
  expect_error({.layer = concat("axis: 2"), .inputs = {{"a", {2, 3}}, {"b", {2, 3}}}},
               "axis 2 is out of range");
}

TEST(Slice, Refusals) {
  const std::vector<LayerInput> inputs = {{"x", {2, 5}}};
  expect_error({.layer = slice(""), .inputs = inputs},
               "the 5 of axis 1 must be divisible by the 2 tops, or slice_point given");
  expect_error({.layer = slice("slice_point: 1 slice_point: 2"), .inputs = inputs},
               "slice_point: 2 tops need 1 points, not 2");
  expect_error({.layer = slice("slice_point: 3 slice_point: 2", 3), .inputs = inputs},
               "slice_point: 3, 2 must increase within 1..4");
  expect_error({.layer = slice("slice_point: 5"), .inputs = inputs}, "must increase within 1..4");
  expect_error({.layer = slice("axis: 1 slice_dim: 1"), .inputs = inputs},
               "axis and slice_dim exclude each other");
}

}  // namespace
}  // namespace crema
