// ArgMax, Tile, Embed, BatchReindex.
#include <cmath>

#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& type, const std::string& fields = "") {
  return "layer { name: \"l\" type: \"" + type + "\" bottom: \"x\" top: \"y\" " + fields + " }";
}
std::string argmax(const std::string& fields) {
  return layer("ArgMax", "argmax_param { " + fields + " }");
}

LayerCase argmax_case(const std::string& name, const std::string& fields, const LayerInput& input,
                      const Shape& shape, const std::vector<float>& values) {
  return {.name = name,
          .layer = argmax(fields),
          .inputs = {input},
          .expect = {{"y", values}},
          .shapes = {{"y", shape}},
          .backward = false};
}

const LayerInput kScores = {.name = "x", .shape = {2, 4}, .values = {1, 4, 4, 2, 9, 7, 8, 6}};

const std::vector<LayerCase> kArgMax = {
    argmax_case("larger_index_of_equals", "", kScores, {2, 1, 1}, {2, 0}),
    argmax_case("top3", "top_k: 3", kScores, {2, 1, 3}, {2, 1, 3, 0, 2, 1}),
    argmax_case("with_values", "top_k: 2 out_max_val: true", kScores, {2, 2, 2},
                {2, 1, 4, 4, 0, 2, 9, 8}),
    argmax_case("along_an_axis", "axis: 0", kScores, {1, 4}, {1, 1, 1, 1}),
    argmax_case("values_along_an_axis", "axis: -1 out_max_val: true top_k: 2", kScores, {2, 2},
                {4, 4, 9, 8}),
    argmax_case("axis_in_the_middle", "axis: 1", {"x", {1, 2, 3}, {1, 5, 3, 4, 2, 3}}, {1, 1, 3},
                {1, 0, 1}),
    argmax_case("four_axes", "", {"x", {1, 2, 1, 2}, {1, 2, 5, 3}}, {1, 1, 1, 1}, {2}),
    argmax_case("nan_last", "top_k: 3", {"x", {1, 3}, {NAN, 1, 2}}, {1, 1, 3}, {2, 1, 0}),
};
INSTANTIATE_TEST_SUITE_P(ArgMax, LayerCases, testing::ValuesIn(kArgMax), case_name);

std::string tile(const std::string& fields) {
  return layer("Tile", "tile_param { " + fields + " }");
}

const std::vector<LayerCase> kTile = {
    {.name = "channels",
     .layer = tile("tiles: 3"),
     .inputs = {{"x", {2, 2, 2, 3}}},
     .shapes = {{"y", {2, 6, 2, 3}}}},
    {.name = "samples",
     .layer = tile("axis: 0 tiles: 2"),
     .inputs = {{"x", {2, 2}, {1, 2, 3, 4}}},
     .expect = {{"y", {1, 2, 3, 4, 1, 2, 3, 4}}},
     .top_gradients = {{"y", {1, 2, 3, 4, 10, 20, 30, 40}}},
     .expect_gradients = {{"x", {11, 22, 33, 44}}}},
    {.name = "columns", .layer = tile("axis: -1 tiles: 2"), .inputs = {{"x", {2, 3, 2, 2}}}},
    {.name = "once", .layer = tile("tiles: 1"), .inputs = {{"x", {2, 3}}}},
};
INSTANTIATE_TEST_SUITE_P(Tile, LayerCases, testing::ValuesIn(kTile), case_name);

LayerInput indices(const Shape& shape, const std::vector<float>& values) {
  return {.name = "x", .shape = shape, .values = values, .gradient = false};
}
std::string embed(const std::string& fields) {
  return layer("Embed", "embed_param { " + fields + " }");
}

const std::vector<LayerCase> kEmbed = {
    {.name = "rows",
     .layer = embed("num_output: 2 input_dim: 3"),
     .inputs = {indices({2, 2}, {2, 0, 2, 1})},
     .params = {{1, 2, 3, 4, 5, 6}, {10, 20}},
     .expect = {{"y", {15, 26, 11, 22, 15, 26, 13, 24}}},
     .shapes = {{"y", {2, 2, 2}}}},
    {.name = "without_bias",
     .layer = embed("num_output: 5 input_dim: 4 bias_term: false"),
     .inputs = {indices({6}, {3, 3, 1, 0, 1, 3})}},
};
INSTANTIATE_TEST_SUITE_P(Embed, LayerCases, testing::ValuesIn(kEmbed), case_name);

const std::string kReindex =
    "layer { name: \"l\" type: \"BatchReindex\" bottom: \"t\" bottom: \"x\" top: \"y\" }";

const std::vector<LayerCase> kBatchReindex = {
    {.name = "repeated_and_left_out",
     .layer = kReindex,
     .inputs = {{"t", {3, 2}, {1, 2, 3, 4, 5, 6}}, indices({4}, {2, 0, 2, 2})},
     .expect = {{"y", {5, 6, 1, 2, 5, 6, 5, 6}}},
     .top_gradients = {{"y", {1, 1, 2, 2, 3, 3, 4, 4}}},
     .expect_gradients = {{"t", {2, 2, 0, 0, 8, 8}}}},
    {.name = "pictures", .layer = kReindex, .inputs = {{"t", {3, 2, 2, 2}}, indices({2}, {1, 2})}},
};
INSTANTIATE_TEST_SUITE_P(BatchReindex, LayerCases, testing::ValuesIn(kBatchReindex), case_name);

TEST(ArgMax, Refusals) {
  const std::vector<LayerInput> inputs = {{"x", {2, 3}}};
  expect_error({.layer = argmax("top_k: 4"), .inputs = inputs, .backward = false},
               "top_k: 4 must be in 1..3");
  expect_error({.layer = argmax("top_k: 0"), .inputs = inputs, .backward = false},
               "must be in 1..3");
  expect_error({.layer = argmax("axis: 2"), .inputs = inputs, .backward = false},
               "axis 2 is out of range");
}

TEST(Tile, Refusals) {
  expect_error({.layer = tile(""), .inputs = {{"x", {2, 3}}}}, "tiles: missing");
  expect_error({.layer = tile("tiles: 0"), .inputs = {{"x", {2, 3}}}}, "tiles: must be at least 1");
}

TEST(Embed, Refusals) {
  expect_error({.layer = embed("num_output: 2 input_dim: 3"), .inputs = {indices({2}, {0, 3})}},
               "index 3 at place 1 must be in 0..2");
  expect_error({.layer = embed("input_dim: 3"), .inputs = {indices({2}, {0, 1})}},
               "num_output: missing");
  expect_error({.layer = embed("num_output: 3"), .inputs = {indices({2}, {0, 1})}},
               "input_dim: must be given");
}

TEST(BatchReindex, Refusals) {
  expect_error({.layer = kReindex, .inputs = {{"t", {3, 2}}, indices({2}, {0, -1})}},
               "index -1 at place 1 must be in 0..2, the rows of bottom \"t\"");
  expect_error({.layer = kReindex, .inputs = {{"t", {3, 2}}, indices({2, 1}, {0, 1})}},
               "bottom \"x\" must have one axis");
}

}  // namespace
}  // namespace crema
