// Reduction: four operations over the last axes, as a blob and as a loss.
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields, const std::string& more = "") {
  return "layer { name: \"l\" type: \"Reduction\" bottom: \"x\" top: \"y\" " + more +
         " reduction_param { " + fields + " } }";
}

const std::vector<LayerCase> kCases = {
    {.name = "sum_of_all",
     .layer = layer(""),
     .inputs = {{"x", {2, 2}, {1, 2, 3, -4}}},
     .expect = {{"y", {2}}},
     .shapes = {{"y", Shape{}}}},
    {.name = "sum_nhwc", .layer = layer("axis: 1 coeff: 3"), .inputs = {{"x", {2, 3, 4, 5}}}},
    {.name = "asum",
     .layer = layer("operation: ASUM axis: 1 coeff: 2"),
     .inputs = {{"x", {2, 3}, {1, -2, 3, 0, -5, 6}}},
     .expect = {{"y", {12, 22}}},
     .top_gradients = {{"y", {1, 10}}},
     .expect_gradients = {{"x", {2, -2, 2, 0, -20, 20}}},
     .check_gradient = false},
    {.name = "sumsq",
     .layer = layer("operation: SUMSQ axis: -1"),
     .inputs = {{"x", {2, 3, 4}}},
     .shapes = {{"y", {2, 3}}}},
    {.name = "mean",
     .layer = layer("operation: MEAN axis: 2 coeff: 0.5"),
     .inputs = {{"x", {1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}}},
     .expect = {{"y", {1.25f, 3.25f}}}},
    {.name = "as_loss",
     .layer = layer("operation: SUMSQ", "loss_weight: 0.5"),
     .inputs = {{"x", {3}, {1, 2, 3}}},
     .expect_gradients = {{"x", {1, 2, 3}}}},
    {.name = "as_loss_of_several",
     .layer = layer("axis: 1", "loss_weight: 2"),
     .inputs = {{"x", {2, 3}}},
     .expect_gradients = {{"x", {2, 2, 2, 2, 2, 2}}}},
    {.name = "one_row_per_value", .layer = layer("axis: 1"), .inputs = {{"x", {40, 1}}}},
};
INSTANTIATE_TEST_SUITE_P(Reduction, LayerCases, testing::ValuesIn(kCases), case_name);

TEST(Reduction, Refusals) {
  expect_error({.layer = layer("axis: 2"), .inputs = {{"x", {2, 3}}}},
               "axis 2 is out of range for a blob with 2 axes");
}

}  // namespace
}  // namespace crema
