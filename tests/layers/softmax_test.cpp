// Softmax: along any axis, and of scores beyond the range of exp.
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields = "") {
  return "layer { name: \"l\" type: \"Softmax\" bottom: \"x\" top: \"y\" softmax_param { " +
         fields + " } }";
}

const std::vector<LayerCase> kCases = {
    {.name = "rows", .layer = layer(), .inputs = {{"x", {3, 7}}}, .in_place = true},
    {.name = "channels", .layer = layer(), .inputs = {{"x", {2, 5, 3, 4}}}},
    {.name = "last_axis", .layer = layer("axis: -1"), .inputs = {{"x", {2, 3, 4}}}},
    {.name = "first_axis", .layer = layer("axis: 0"), .inputs = {{"x", {4, 3}}}},
    {.name = "large_scores",
     .layer = layer(),
     .inputs = {{"x", {2, 2}, {1000, 1000, -1e30f, 1e30f}}},
     .expect = {{"y", {0.5f, 0.5f, 0, 1}}},
     .check_gradient = false},
};
INSTANTIATE_TEST_SUITE_P(Softmax, LayerCases, testing::ValuesIn(kCases), case_name);

TEST(Softmax, Refusals) {
  expect_error({.layer = layer("axis: 4"), .inputs = {{"x", {2, 3}}}}, "axis 4 is out of range");
}

}  // namespace
}  // namespace crema
