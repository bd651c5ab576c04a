// SmoothL1Loss, L1Loss, CenterLoss, TripletLoss.
#include <cmath>

#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& type, const std::string& bottoms,
                  const std::string& fields = "") {
  return "layer { name: \"loss\" type: \"" + type + "\" " + bottoms + " top: \"l\" " + fields +
         " }";
}
const std::string kTwo = "bottom: \"a\" bottom: \"b\"";
const std::string kThree = kTwo + " bottom: \"in\"";
const std::string kFour = kThree + " bottom: \"out\"";

LayerInput fixed(const std::string& name, const Shape& shape, const std::vector<float>& values) {
  return {.name = name, .shape = shape, .values = values, .gradient = false};
}

const std::vector<LayerCase> kSmooth = {
    {.name = "both_parts",
     .layer = layer("SmoothL1Loss", kTwo),
     .inputs = {{"a", {1, 2}, {0.5f, -2}}, {"b", {1, 2}, {0, 0}}},
     .expect = {{"l", {1.625f}}},
     .expect_gradients = {{"a", {0.5f, -1}}, {"b", {-0.5f, 1}}}},
    {.name = "sigma",
     .layer = layer("SmoothL1Loss", kTwo, "smooth_l1_loss_param { sigma: 2 }"),
     .inputs = {{"a", {1, 3}, {0.5f, -2, 0.125f}}, {"b", {1, 3}, {0, 0, 0}}},
     .expect = {{"l", {0.375f + 1.875f + 0.03125f}}},
     .expect_gradients = {{"a", {1, -1, 0.5f}}}},
    {.name = "inside_weights",
     .layer = layer("SmoothL1Loss", kThree),
     .inputs = {{"a", {2, 1}, {0.5f, 4}}, {"b", {2, 1}, {0, 0}}, fixed("in", {2, 1}, {1, 0})},
     .expect = {{"l", {0.125f / 2}}},
     .expect_gradients = {{"a", {0.25f, 0}}}},
    {.name = "both_weights",
     .layer = layer("SmoothL1Loss", kFour, "loss_weight: 3"),
     .inputs = {{"a", {2, 1}, {1, 4}},
                {"b", {2, 1}, {0, 0}},
                fixed("in", {2, 1}, {0.5f, 1}),
                fixed("out", {2, 1}, {2, 10})},
     .expect = {{"l", {(2 * 0.125f + 10 * 3.5f) / 2}}},
     .expect_gradients = {{"a", {3 * 0.25f, 3 * 5}}}},
    {.name = "pictures",
     .layer = layer("SmoothL1Loss", kFour, "smooth_l1_loss_param { sigma: 3 }"),
     .inputs = {{"a", {2, 4, 2, 3}},
                {"b", {2, 4, 2, 3}},
                {.name = "in", .shape = {2, 4, 2, 3}, .gradient = false},
                {.name = "out", .shape = {2, 4, 2, 3}, .gradient = false}},
     .step = 1e-3f},
};
INSTANTIATE_TEST_SUITE_P(SmoothL1Loss, LayerCases, testing::ValuesIn(kSmooth), case_name);

const std::vector<LayerCase> kL1 = {
    {.name = "known_values",
     .layer = layer("L1Loss", kTwo),
     .inputs = {{"a", {2, 2}, {1, 2, 3, 4}}, {"b", {2, 2}, {0, 4, 3, 1}}},
     .expect = {{"l", {3}}},
     .expect_gradients = {{"a", {0.5f, -0.5f, 0, 0.5f}}, {"b", {-0.5f, 0.5f, 0, -0.5f}}},
     .check_gradient = false},
    {.name = "drawn",
     .layer = layer("L1Loss", kTwo),
     .inputs = {{"a", {2, 3}}, {.name = "b", .shape = {2, 3}, .low = 2, .high = 3}}},
};
INSTANTIATE_TEST_SUITE_P(L1Loss, LayerCases, testing::ValuesIn(kL1), case_name);

const std::string kCenter =
    layer("CenterLoss", "bottom: \"x\" bottom: \"label\"", "center_loss_param { num_output: 3 }");
const LayerCase kCenterCase = {.name = "known_values",
                               .layer = kCenter,
                               .inputs = {{"x", {2, 2}, {1, 2, 3, 4}}, fixed("label", {2}, {1, 1})},
                               .params = {{5, 6, 1, 0, 7, 8}},
                               .expect = {{"l", {6}}},
                               .expect_gradients = {{"x", {0, 1, 1, 2}}},
                               .check_gradient = false};
INSTANTIATE_TEST_SUITE_P(CenterLoss, LayerCases, testing::Values(kCenterCase), case_name);

TEST(CenterLoss, CentresMoveAsThePaperSays) {
  const std::vector<float> moved = run_layer(kCenterCase).param_gradients[0];
  EXPECT_TRUE(values_near(moved, {0, 0, -2 / 3.0f, -2, 0, 0}, 1e-6f));
}

TEST(CenterLoss, Refusals) {
  LayerCase test = kCenterCase;
  test.inputs[1].values = {1, 3};
  expect_error(test, "label 3 of sample 1 must be in 0..2");
  test.layer = layer("CenterLoss", "bottom: \"x\" bottom: \"label\"");
  expect_error(test, "num_output: missing");
}

const std::string kTriplet = layer("TripletLoss", "bottom: \"a\" bottom: \"p\" bottom: \"n\"",
                                   "triplet_loss_param { margin: 4 }");
const std::vector<LayerCase> kTriplets = {
    {.name = "known_values",
     .layer = kTriplet,
     .inputs = {{"a", {2, 2}, {0, 0, 0, 0}},
                {"p", {2, 2}, {1, 0, 0, 0}},
                {"n", {2, 2}, {0, 2, 3, 0}}},
     .expect = {{"l", {0.25f}}},
     .expect_gradients = {{"a", {-0.5f, 1, 0, 0}}, {"p", {0.5f, 0, 0, 0}}, {"n", {0, -1, 0, 0}}}},
    {.name = "drawn", .layer = kTriplet, .inputs = {{"a", {4, 3}}, {"p", {4, 3}}, {"n", {4, 3}}}},
};
INSTANTIATE_TEST_SUITE_P(TripletLoss, LayerCases, testing::ValuesIn(kTriplets), case_name);

TEST(DistanceLosses, Refusals) {
  expect_error({.layer = layer("SmoothL1Loss", kTwo), .inputs = {{"a", {2, 3}}, {"b", {3, 2}}}},
               "bottom \"b\" of shape 3 2 must have as many samples and values as bottom \"a\"");
  expect_error({.layer = layer("SmoothL1Loss", kTwo, "smooth_l1_loss_param { sigma: 0 }"),
                .inputs = {{"a", {2, 3}}, {"b", {2, 3}}}},
               "sigma: must be above 0, got 0");
  expect_error({.layer = layer("L1Loss", kTwo), .inputs = {{"a", {2, 3}}, {"b", {2, 2}}}},
               "must have as many samples and values");
  expect_error({.layer = kTriplet, .inputs = {{"a", {2, 3}}, {"p", {2, 3}}, {"n", {2, 2}}}},
               "bottom \"n\" of shape 2 2 must have the shape of bottom \"a\", 2 3");
}

}  // namespace
}  // namespace crema
