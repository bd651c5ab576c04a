// InnerProduct: flattening, transposed weights, refusals.
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields) {
  return "layer { name: \"l\" type: \"InnerProduct\" bottom: \"x\" top: \"y\" inner_product_param "
         "{ " +
         fields + " } }";
}

const std::vector<LayerCase> kCases = {
    {.name = "known_values",
     .layer = layer("num_output: 2"),
     .inputs = {{"x", {1, 3}, {1, 2, 3}}},
     .params = {{1, 0, -1, 2, 2, 2}, {10, 20}},
     .expect = {{"y", {8, 32}}}},
    {.name = "four_axes",
     .layer = layer("num_output: 5"),
     .inputs = {{"x", {3, 2, 3, 2}}},
     .shapes = {{"y", {3, 5}}}},
    {.name = "axis_2_without_bias",
     .layer = layer("num_output: 5 axis: 2 bias_term: false"),
     .inputs = {{"x", {2, 3, 4, 2}}},
     .shapes = {{"y", {2, 3, 5}}}},
    {.name = "transposed",
     .layer = layer("num_output: 2 transpose: true"),
     .inputs = {{"x", {1, 3}, {1, 2, 3}}},
     .params = {{1, 2, 0, 2, -1, 2}, {10, 20}},
     .expect = {{"y", {8, 32}}}},
    {.name = "axis_0",
     .layer = layer("num_output: 4 axis: 0"),
     .inputs = {{"x", {2, 3}}},
     .shapes = {{"y", {4}}}},
    {.name = "absorbs_relu",
     .layer = layer("num_output: 6") + R"(layer { name: "r" type: "ReLU" bottom: "y" top: "y" })",
     .inputs = {{"x", {4, 5}}},
     .step = 1e-3f},
};
INSTANTIATE_TEST_SUITE_P(InnerProduct, LayerCases, testing::ValuesIn(kCases), case_name);

void expect_bad(const std::string& fields, const std::string& text, const Shape& shape = {2, 3}) {
  expect_error({.name = "bad", .layer = layer(fields), .inputs = {{"x", shape}}}, text);
}

TEST(InnerProductErrors, NameTheField) {
  expect_bad("bias_term: true", "num_output: missing");
  expect_bad("num_output: 0", "num_output: must be at least 1");
  expect_bad("num_output: 2 axis: 2", "axis: 2 does not exist in bottom \"x\" of shape 2 3");
  expect_bad("num_output: 2000000000", "top: shape 2 2000000000 has more than");
  expect_bad("num_output: 2000000000", "weights: shape 2000000000 3 has more than", {1, 3});
}

}  // namespace
}  // namespace crema
