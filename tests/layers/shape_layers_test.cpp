// Split, Flatten, Reshape, Silence: values stay, shapes and names change.
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& type, const std::string& fields = "") {
  return "layer { name: \"l\" type: \"" + type + "\" bottom: \"x\" top: \"y\" " + fields + " }";
}
std::string reshape(const std::string& fields) {
  return layer("Reshape", "reshape_param { " + fields + " }");
}
LayerCase reshape_case(const std::string& name, const std::string& fields, const Shape& from,
                       const Shape& to) {
  return {.name = name, .layer = reshape(fields), .inputs = {{"x", from}}, .shapes = {{"y", to}}};
}

const std::vector<LayerCase> kSplit = {
    {.name = "three_tops",
     .layer =
         "layer { name: \"l\" type: \"Split\" bottom: \"x\" top: \"a\" top: \"b\" top: \"c\" }",
     .inputs = {{"x", {1, 2, 2}, {1, 2, 3, 4}}},
     .expect = {{"a", {1, 2, 3, 4}}, {"c", {1, 2, 3, 4}}},
     .top_gradients = {{"a", {1, 2, 3, 4}}, {"b", {1, 1, 1, 1}}, {"c", {10, 0, 0, 0}}},
     .expect_gradients = {{"x", {12, 3, 4, 5}}}},
    {.name = "a_top_without_gradient",
     .layer = "layer { name: \"l\" type: \"Split\" bottom: \"x\" top: \"a\" top: \"b\" }",
     .inputs = {{"x", {2, 3}}},
     .no_loss = {"b"}},
};
INSTANTIATE_TEST_SUITE_P(Split, LayerCases, testing::ValuesIn(kSplit), case_name);

const std::vector<LayerCase> kFlatten = {
    {.name = "default",
     .layer = layer("Flatten"),
     .inputs = {{"x", {2, 3, 4, 5}}},
     .shapes = {{"y", {2, 60}}}},
    {.name = "middle_axes",
     .layer = layer("Flatten", "flatten_param { axis: 1 end_axis: -2 }"),
     .inputs = {{"x", {2, 3, 4, 5}}},
     .shapes = {{"y", {2, 12, 5}}}},
    {.name = "all",
     .layer = layer("Flatten", "flatten_param { axis: 0 }"),
     .inputs = {{"x", {2, 3}}},
     .shapes = {{"y", {6}}}},
};
INSTANTIATE_TEST_SUITE_P(Flatten, LayerCases, testing::ValuesIn(kFlatten), case_name);

const std::vector<LayerCase> kReshape = {
    reshape_case("copied_and_inferred", "shape { dim: 0 dim: -1 }", {2, 3, 4, 5}, {2, 60}),
    reshape_case("given", "shape { dim: 4 dim: 6 }", {2, 3, 4}, {4, 6}),
    reshape_case("inner_axes", "shape { dim: 6 dim: 2 } axis: 1 num_axes: 2", {2, 3, 4, 5},
                 {2, 6, 2, 5}),
    reshape_case("inserted_axes", "shape { dim: 1 dim: 1 } axis: 1 num_axes: 0", {2, 3},
                 {2, 1, 1, 3}),
    reshape_case("appended_axis", "shape { dim: 1 } axis: -1", {2, 3}, {2, 3, 1}),
    reshape_case("inserted_from_the_end", "shape { dim: 1 } axis: -2 num_axes: 0", {2, 3},
                 {2, 1, 3}),
    reshape_case("copy_at_axis", "shape { dim: 0 dim: -1 dim: 2 } axis: 1", {2, 3, 4},
                 {2, 3, 2, 2}),
    reshape_case("removed_axes", "shape { } axis: 1 num_axes: 1", {2, 1, 3}, {2, 3}),
};
INSTANTIATE_TEST_SUITE_P(Reshape, LayerCases, testing::ValuesIn(kReshape), case_name);

const std::vector<LayerCase> kSilence = {
    {.name = "beside_a_reader",
     .layer = "layer { name: \"s\" type: \"Silence\" bottom: \"x\" bottom: \"u\" }"
              "layer { name: \"r\" type: \"Reduction\" bottom: \"x\" top: \"y\" }",
     .inputs = {{"x", {2, 3}}, {.name = "u", .shape = {4}, .gradient = false}},
     .top_gradients = {{"y", {1}}},
     .expect_gradients = {{"x", std::vector<float>(6, 1)}}},
};
INSTANTIATE_TEST_SUITE_P(Silence, LayerCases, testing::ValuesIn(kSilence), case_name);

TEST(Flatten, Refusals) {
  expect_error({.layer = layer("Flatten", "flatten_param { axis: 2 end_axis: 1 }"),
                .inputs = {{"x", {2, 3, 4}}}},
               "axis 2 must not lie behind end_axis 1");
  expect_error(
      {.layer = layer("Flatten", "flatten_param { axis: 3 }"), .inputs = {{"x", {2, 3, 4}}}},
      "axis 3 is out of range");
}

TEST(Reshape, Refusals) {
  const std::vector<LayerInput> inputs = {{"x", {2, 3, 4}}};
  expect_error({.layer = reshape("shape { dim: 5 dim: 5 }"), .inputs = inputs},
               "shape: 5 5 holds 25 values, the bottom of shape 2 3 4 has 24");
  expect_error({.layer = reshape("shape { dim: -1 dim: -1 }"), .inputs = inputs},
               "shape: -1 may stand only once");
  expect_error({.layer = reshape("shape { dim: -1 dim: 7 }"), .inputs = inputs},
               "cannot be divided by the other sizes' product, 7");
  expect_error(
      {.layer = reshape("shape { dim: 1 dim: 1 dim: 1 dim: 0 }"), .inputs = inputs},
      "shape: dim 0 at place 3 copies axis 3, which a bottom of shape 2 3 4 does not have");
  expect_error({.layer = reshape("shape { dim: -2 }"), .inputs = inputs},
               "a dim must be -1, 0 or more");
  expect_error({.layer = reshape("shape { dim: 1 } axis: 4"), .inputs = inputs},
               "axis: 4 must be in -4..3");
  expect_error({.layer = reshape("shape { dim: 1 } axis: 1 num_axes: 3"), .inputs = inputs},
               "num_axes: 3 axes from axis 1 on are more");
}

TEST(Reports, B59_ReshapeOfDummyDataEqualsItsSource) {
  LayerCase test{
      .name = "B59",
      .layer =
          "layer { name: \"d\" type: \"DummyData\" top: \"d\" dummy_data_param { shape { dim: 2 "
          "dim: 3 } data_filler { type: \"gaussian\" } } }"
          "layer { name: \"r\" type: \"Reshape\" bottom: \"d\" top: \"r\" reshape_param { shape "
          "{ dim: 2 dim: 3 } } }"
          "layer { name: \"l\" type: \"EuclideanLoss\" bottom: \"d\" bottom: \"r\" top: \"l\" }"
          "layer { name: \"n\" type: \"Reduction\" bottom: \"r\" top: \"n\" reduction_param { "
          "operation: SUMSQ } }",
      .backward = false};
  for (const bool planned : {false, true}) {
    for (const int forwards : {1, 2, 5}) {
      const LayerRun run = run_layer(test, {.planned = planned, .forwards = forwards});
      EXPECT_EQ(run.blobs.at("l"), std::vector<float>{0});
      EXPECT_GT(run.blobs.at("n")[0], 0);
    }
  }
}

}  // namespace
}  // namespace crema
