// EuclideanLoss: the divisor, both gradients, refusals.
#include "layers/layer_harness.h"

namespace crema {
namespace {

const std::string kLayer =
    "layer { name: \"loss\" type: \"EuclideanLoss\" bottom: \"a\" bottom: \"b\" top: \"l\" }";

const std::vector<LayerCase> kCases = {
    {.name = "rows", .layer = kLayer, .inputs = {{"a", {3, 4}}, {"b", {3, 4}}}},
    {.name = "pictures", .layer = kLayer, .inputs = {{"a", {2, 3, 4, 5}}, {"b", {2, 3, 4, 5}}}},
    {.name = "other_shape_same_count",
     .layer = kLayer,
     .inputs = {{"a", {2, 3, 1, 1}, {1, 2, 3, 4, 5, 6}}, {"b", {2, 3}, {1, 2, 3, 4, 5, 8}}},
     .expect = {{"l", {1}}},
     .expect_gradients = {{"a", {0, 0, 0, 0, 0, -1}}, {"b", {0, 0, 0, 0, 0, 1}}}},
};
INSTANTIATE_TEST_SUITE_P(EuclideanLoss, LayerCases, testing::ValuesIn(kCases), case_name);

const std::vector<LayerCase> kReports = {
    {.name = "B37_divides_by_2N",
     .layer = kLayer,
     .inputs = {{"a", {2, 3}, std::vector<float>(6, 1)}, {"b", {2, 3}, std::vector<float>(6, 0)}},
     .expect = {{"l", {1.5f}}},
     .expect_gradients = {{"a", std::vector<float>(6, 0.5f)}, {"b", std::vector<float>(6, -0.5f)}}},
};
INSTANTIATE_TEST_SUITE_P(ReportsEuclideanLoss, LayerCases, testing::ValuesIn(kReports), case_name);

TEST(EuclideanLoss, Refusals) {
  expect_error(
      {.layer = kLayer, .inputs = {{"a", {2, 3}}, {"b", {3, 2}}}},
      "bottom \"b\" of shape 3 2 must have as many samples and values as bottom \"a\", 2 3");
  expect_error({.layer = kLayer, .inputs = {{"a", {2, 3}}, {"b", {2, 4}}}}, "as many samples");
}

}  // namespace
}  // namespace crema
