// SigmoidCrossEntropyLoss: the stable form, ignored targets, divisors.
#include <cmath>

#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields = "") {
  return "layer { name: \"loss\" type: \"SigmoidCrossEntropyLoss\" bottom: \"x\" bottom: \"t\" "
         "top: \"l\" loss_param { " +
         fields + " } }";
}

LayerInput targets(const Shape& shape, const std::vector<float>& values) {
  return {.name = "t", .shape = shape, .values = values, .gradient = false};
}
LayerInput drawn_targets(const Shape& shape) {
  return {.name = "t", .shape = shape, .low = 0, .high = 1, .gradient = false};
}

/// Four scores of 0 against targets 0 and 1: each costs log 2.
LayerCase divisor_case(const std::string& name, const std::string& fields, float expected) {
  return {.name = name,
          .layer = layer(fields),
          .inputs = {{"x", {2, 2}, {0, 0, 0, 0}}, targets({2, 2}, {0, 1, 1, 1})},
          .expect = {{"l", {std::log(2.0f) * expected}}}};
}

const std::vector<LayerCase> kCases = {
    {.name = "rows", .layer = layer(), .inputs = {{"x", {3, 4}}, drawn_targets({3, 4})}},
    {.name = "pictures",
     .layer = layer(),
     .inputs = {{"x", {2, 3, 2, 2}}, drawn_targets({2, 3, 2, 2})}},
    {.name = "large_scores",
     .layer = layer(),
     .inputs = {{"x", {1, 4}, {500, -500, 500, -500}}, targets({1, 4}, {1, 0, 0, 1})},
     .expect = {{"l", {1000}}},
     .expect_gradients = {{"x", {0, 0, 1, -1}}},
     .check_gradient = false},
    {.name = "ignored",
     .layer = layer("ignore_label: 255"),
     .inputs = {{"x", {2, 2}, {0, 3, 0, 3}}, targets({2, 2}, {0, 255, 1, 255})},
     .expect = {{"l", {std::log(2.0f)}}},
     .expect_gradients = {{"x", {0.25f, 0, -0.25f, 0}}}},
    divisor_case("batch_size_is_the_default", "", 2),
    divisor_case("full", "normalization: FULL", 1),
    divisor_case("valid_with_ignored", "normalization: VALID ignore_label: 1", 1),
    divisor_case("none", "normalization: NONE", 4),
    divisor_case("normalize_true", "normalize: true", 1),
};
INSTANTIATE_TEST_SUITE_P(SigmoidCrossEntropyLoss, LayerCases, testing::ValuesIn(kCases), case_name);

TEST(SigmoidCrossEntropyLoss, Refusals) {
  expect_error({.layer = layer(), .inputs = {{"x", {2, 3}}, targets({2, 2}, {0, 0, 0, 0})}},
               "bottom \"t\" of shape 2 2 must hold as many targets as bottom \"x\" of shape 2 3");
}

}  // namespace
}  // namespace crema
