// Eltwise: the three operations, their tie and gradient rules, and refusals.
#include <cmath>

#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields, int bottoms = 3) {
  std::string text = "layer { name: \"l\" type: \"Eltwise\" top: \"y\" ";
  for (int i = 0; i < bottoms; ++i) text += str("bottom: \"", static_cast<char>('a' + i), "\" ");
  return text + "eltwise_param { " + fields + " } }";
}

std::vector<LayerInput> three(const Shape& shape) {
  return {{"a", shape}, {"b", shape}, {"c", shape}};
}

const std::vector<LayerCase> kCases = {
    {.name = "sum", .layer = layer(""), .inputs = three({2, 3, 4, 5}), .in_place = true},
    {.name = "sum_coeff",
     .layer = layer("coeff: 2 coeff: -1 coeff: 0.5"),
     .inputs = {{"a", {2}, {1, 2}}, {"b", {2}, {3, 4}}, {"c", {2}, {2, 8}}},
     .expect = {{"y", {0, 4}}},
     .top_gradients = {{"y", {1, 3}}},
     .expect_gradients = {{"a", {2, 6}}, {"b", {-1, -3}}, {"c", {0.5f, 1.5f}}},
     .in_place = true},
    {.name = "one_bottom",  // FlowNet's
     .layer = layer("coeff: 3", 1),
     .inputs = {{"a", {2, 3, 2, 2}, std::vector<float>(24, 2)}},
     .expect = {{"y", std::vector<float>(24, 6)}},
     .in_place = true},
    {.name = "product_of_one", .layer = layer("operation: PROD", 1), .inputs = {{"a", {2, 3}}}},
    {.name = "maximum_of_one", .layer = layer("operation: MAX", 1), .inputs = {{"a", {2, 3}}}},
    {.name = "sum_of_two", .layer = layer("", 2), .inputs = {{"a", {3, 7}}, {"b", {3, 7}}}},
    {.name = "sum_relu",
     .layer = layer("coeff: 1 coeff: 2", 2) +
              "layer { name: \"r\" type: \"ReLU\" bottom: \"y\" top: \"y\" relu_param { "
              "negative_slope: 0.25 } }",
     .inputs = {{"a", {1, 2, 2}, {1, -2, 3, -4}}, {"b", {1, 2, 2}, {1, -1, -1, 1}}},
     .expect = {{"y", {3, -1, 1, -0.5f}}},
     .top_gradients = {{"y", {1, 1, 1, 1}}},
     .expect_gradients = {{"a", {1, 0.25f, 1, 0.25f}}, {"b", {2, 0.5f, 2, 0.5f}}}},
    {.name = "same_blob_twice",
     .layer = "layer { name: \"l\" type: \"Eltwise\" bottom: \"a\" bottom: \"a\" top: \"y\" "
              "eltwise_param { operation: PROD } }",
     .inputs = {{"a", {2, 3}}}},
    {.name = "product", .layer = layer("operation: PROD"), .inputs = three({2, 3, 2, 3})},
    {.name = "product_with_zero",
     .layer = layer("operation: PROD", 2),
     .inputs = {{"a", {2}, {0, 2}}, {"b", {2}, {3, 5}}},
     .expect = {{"y", {0, 10}}},
     .top_gradients = {{"y", {1, 1}}},
     .expect_gradients = {{"a", {3, 5}}, {"b", {0, 2}}}},
    {.name = "product_unstable",
     .layer = layer("operation: PROD stable_prod_grad: false", 2),
     .inputs = {{.name = "a", .shape = {2, 5}, .low = 0.5f, .high = 1.5f},
                {.name = "b", .shape = {2, 5}, .low = 0.5f, .high = 1.5f}}},
    {.name = "product_unstable_zero",
     .layer = layer("operation: PROD stable_prod_grad: false", 2),
     .inputs = {{"a", {2}, {0, 2}}, {"b", {2}, {3, 5}}},
     .top_gradients = {{"y", {1, 1}}},
     .expect_gradients = {{"a", {NAN, 5}}, {"b", {0, 2}}},
     .check_gradient = false},
    {.name = "maximum",
     .layer = layer("operation: MAX"),
     .inputs = {{"a", {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}},
                {"b", {2, 2, 2}, {8, 7, 6, 5, 4, 3, 2, 1}},
                {"c", {2, 2, 2}, {0, 7.5f, 0, 0, 4.5f, 9, 0, 0}}},
     .expect = {{"y", {8, 7.5f, 6, 5, 5, 9, 7, 8}}},
     .in_place = true},
    {.name = "maximum_ties",
     .layer = layer("operation: MAX"),
     .inputs = {{"a", {3}, {1, 1, 2}}, {"b", {3}, {1, 0, 2}}, {"c", {3}, {1, 1, 2}}},
     .top_gradients = {{"y", {1, 2, 3}}},
     .expect_gradients = {{"a", {0, 2, 0}}, {"b", {1, 0, 3}}, {"c", {0, 0, 0}}},
     .check_gradient = false},
};
INSTANTIATE_TEST_SUITE_P(Eltwise, LayerCases, testing::ValuesIn(kCases), case_name);

TEST(Eltwise, Refusals) {
  const std::vector<LayerInput> inputs = {{"a", {2, 3}}, {"b", {2, 3}}};
  expect_error({.layer = layer("", 2), .inputs = {{"a", {2, 3}}, {"b", {3, 2}}}},
               "bottom \"b\" of shape 3 2 must have the shape of bottom \"a\", 2 3");
  expect_error({.layer = layer("coeff: 1", 2), .inputs = inputs},
               "coeff: give none or one per bottom (2), not 1");
  expect_error({.layer = layer("operation: PROD coeff: 1 coeff: 2", 2), .inputs = inputs},
               "coeff: has no meaning for operation PROD");
}

}  // namespace
}  // namespace crema
