// HingeLoss, MultinomialLogisticLoss, InfogainLoss, ContrastiveLoss.
#include <cmath>
#include <filesystem>

#include "base/test_folder.h"
#include "io/mean.h"
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& type, const std::string& fields = "") {
  return "layer { name: \"loss\" type: \"" + type +
         "\" bottom: \"x\" bottom: \"label\" top: \"l\" " + fields + " }";
}

LayerInput labels(const Shape& shape, const std::vector<float>& values) {
  return {.name = "label", .shape = shape, .values = values, .gradient = false};
}

const std::vector<LayerCase> kHinge = {
    {.name = "l1",
     .layer = layer("HingeLoss"),
     .inputs = {{"x", {2, 3}, {0.5f, -0.25f, 2, -2, 0.5f, 3}}, labels({2}, {0, 1})},
     .expect = {{"l", {(0.5f + 0.75f + 3 + 0 + 0.5f + 4) / 2}}},
     .expect_gradients = {{"x", {-0.5f, 0.5f, 0.5f, 0, -0.5f, 0.5f}}},
     .step = 1e-3f},
    {.name = "l2",
     .layer = layer("HingeLoss", "hinge_loss_param { norm: L2 } loss_weight: 2"),
     .inputs = {{"x", {2, 3}, {0.5f, -0.25f, 2, -2, 0.5f, 3}}, labels({2}, {0, 1})},
     .expect = {{"l", {(0.25f + 0.5625f + 9 + 0.25f + 16) / 2}}}},
    {.name = "more_axes",
     .layer = layer("HingeLoss"),
     .inputs = {{"x", {2, 3, 1, 1}, {0.5f, -0.25f, 2, -2, 0.5f, 3}}, labels({2}, {2, 0})},
     .step = 1e-3f},
};
INSTANTIATE_TEST_SUITE_P(HingeLoss, LayerCases, testing::ValuesIn(kHinge), case_name);

const std::vector<LayerCase> kMultinomial = {
    {.name = "known_values",
     .layer = layer("MultinomialLogisticLoss"),
     .inputs = {{"x", {2, 2}, {0.25f, 0.75f, 0.5f, 0.5f}}, labels({2}, {0, 1})},
     .expect = {{"l", {(std::log(4.0f) + std::log(2.0f)) / 2}}},
     .expect_gradients = {{"x", {-2, 0, 0, -1}}}},
    {.name = "smallest_probability",
     .layer = layer("MultinomialLogisticLoss"),
     .inputs = {{"x", {1, 2}, {0, 1}}, labels({1}, {0})},
     .expect = {{"l", {-std::log(1e-20f)}}},
     .expect_gradients = {{"x", {-1e20f, 0}}},
     .check_gradient = false},
};
INSTANTIATE_TEST_SUITE_P(MultinomialLogisticLoss, LayerCases, testing::ValuesIn(kMultinomial),
                         case_name);

std::string infogain(const std::string& fields = "", const std::string& tops = "") {
  return "layer { name: \"loss\" type: \"InfogainLoss\" bottom: \"x\" bottom: \"label\" bottom: "
         "\"h\" "
         "top: \"l\" " +
         tops + fields + " }";
}
LayerInput gains(const Shape& shape, const std::vector<float>& values) {
  return {.name = "h", .shape = shape, .values = values, .gradient = false};
}
const std::vector<float> kIdentity = {1, 0, 0, 0, 1, 0, 0, 0, 1};
const std::vector<float> kGains = {2, 0.5f, 0, -1, 1, 0.25f, 0, 0.5f, 3};

const std::vector<LayerCase> kInfogain = {
    {.name = "matrix",
     .layer = infogain(),
     .inputs = {{"x", {4, 3}}, labels({4}, {0, 1, 2, 1}), gains({3, 3}, kGains)}},
    {.name = "spatial",
     .layer = infogain("loss_param { ignore_label: 2 normalization: FULL }"),
     .inputs = {{"x", {2, 3, 2}}, labels({2, 2}, {0, 1, 2, 1}), gains({1, 1, 3, 3}, kGains)}},
    {.name = "last_axis",
     .layer = infogain("infogain_loss_param { axis: -1 } loss_param { ignore_label: 1 }"),
     .inputs = {{"x", {2, 2, 3}}, labels({2, 2}, {0, 1, 2, 1}), gains({3, 3}, kGains)}},
    {.name = "probabilities_top",
     .layer = infogain("", "top: \"p\" "),
     .inputs = {{"x", {1, 3}, {1, 1, 1}}, labels({1}, {1}), gains({3, 3}, kIdentity)},
     .expect = {{"l", {std::log(3.0f)}}, {"p", {1 / 3.0f, 1 / 3.0f, 1 / 3.0f}}},
     .no_loss = {"p"}},
};
INSTANTIATE_TEST_SUITE_P(InfogainLoss, LayerCases, testing::ValuesIn(kInfogain), case_name);

TEST(Reports, B39_InfogainOfTheIdentityIsSoftmaxWithLoss) {
  LayerCase test{.name = "B39",
                 .layer = infogain(),
                 .inputs = {{"x", {3, 3}}, labels({3}, {0, 1, 2}), gains({3, 3}, kIdentity)}};
  const LayerRun gain = run_layer(test);
  test.layer = layer("SoftmaxWithLoss");
  test.inputs.pop_back();
  const LayerRun softmax = run_layer(test);
  EXPECT_TRUE(values_near(gain.blobs.at("l"), softmax.blobs.at("l"), 1e-6f));
  EXPECT_TRUE(values_near(gain.gradients.at("x"), softmax.gradients.at("x"), 1e-6f));
}

TEST(Reports, B39_MatrixFromAFileAndOfAWrongSize) {
  const TestFolder folder;
  const std::string path = folder / "infogain.binaryproto";
  write_mean(path, {.shape = {1, 1, 3, 3}, .data = kGains, .diff = {}});
  const std::string fields = "infogain_loss_param { source: \"" + path + "\" }";
  LayerCase test{.name = "file",
                 .layer = layer("InfogainLoss", fields),
                 .inputs = {{"x", {3, 3}}, labels({3}, {0, 1, 2})}};
  const LayerRun from_file = run_layer(test);
  test.inputs[0].shape = {3, 4};
  expect_error(test, "holds 9 values, the information gain matrix of 4 classes has 16");
  test = {.name = "bottom",
          .layer = infogain(),
          .inputs = {{"x", {3, 3}}, labels({3}, {0, 1, 2}), gains({3, 3}, kGains)}};
  EXPECT_EQ(from_file.blobs.at("l"), run_layer(test).blobs.at("l"));
  test.inputs[2] = gains({2, 2}, {1, 0, 0, 1});
  expect_error(test, "bottom \"h\" of shape 2 2 must hold the 3 x 3 values");
}

TEST(InfogainLoss, Refusals) {
  const std::vector<LayerInput> inputs = {{"x", {3, 3}}, labels({3}, {0, 1, 2})};
  expect_error({.layer = layer("InfogainLoss"), .inputs = inputs},
               "needs the information gain matrix");
  expect_error({.layer = layer("InfogainLoss", "loss_param { normalize: true }"), .inputs = inputs},
               "normalize is not read by InfogainLoss");
}

TEST(Reports, B29_LabelOutOfRangeInEveryLoss) {
  for (const char* type : {"HingeLoss", "MultinomialLogisticLoss"}) {
    expect_error({.layer = layer(type), .inputs = {{"x", {3, 3}}, labels({3}, {0, 1, 7})}},
                 "label 7 of sample 2 must be in 0..2");
    expect_error({.layer = layer(type), .inputs = {{"x", {3, 3}}, labels({3}, {-1, 1, 0})}},
                 "label -1 of sample 0 must be in 0..2");
  }
  expect_error({.layer = infogain(),
                .inputs = {{"x", {3, 3}}, labels({3}, {0, 1, 7}), gains({3, 3}, kIdentity)}},
               "label 7 of sample 2 must be in 0..2");
}

TEST(HingeLoss, Refusals) {
  expect_error({.layer = layer("HingeLoss"), .inputs = {{"x", {3, 2}}, labels({2}, {0, 0})}},
               "bottom \"label\" must hold 3 labels");
}

TEST(MultinomialLogisticLoss, Refusals) {
  expect_error({.layer = layer("MultinomialLogisticLoss"),
                .inputs = {{"x", {3, 2}}, labels({3, 2}, {0, 0, 0, 0, 0, 0})}},
               "bottom \"label\" must hold 3 labels");
}

std::string contrastive(const std::string& fields = "") {
  return "layer { name: \"loss\" type: \"ContrastiveLoss\" bottom: \"a\" bottom: \"b\" bottom: "
         "\"label\" top: \"l\" contrastive_loss_param { " +
         fields + " } }";
}

const std::vector<LayerCase> kContrastive = {
    {.name = "known_values",
     .layer = contrastive("margin: 5"),
     .inputs = {{"a", {3, 2}, {3, 0, 3, 0, 9, 0}},
                {"b", {3, 2}, {0, 4, 0, 0, 0, 0}},
                labels({3}, {1, 0, 0})},
     .expect = {{"l", {(25 + 4) / 6.0f}}},
     .expect_gradients = {{"a", {1, -4 / 3.0f, -2 / 3.0f, 0, 0, 0}}}},
    {.name = "drawn",
     .layer = contrastive("margin: 4"),
     .inputs = {{"a", {4, 3}}, {"b", {4, 3, 1, 1}}, labels({4}, {1, 0, 0, 1})}},
    {.name = "legacy",
     .layer = contrastive("margin: 10 legacy_version: true"),
     .inputs = {{"a", {4, 3}}, {"b", {4, 3}}, labels({4}, {1, 0, 0, 1})}},
    {.name = "one_value_each",
     .layer = contrastive(),
     .inputs = {{"a", {3}, {2, 0.5f, 3}}, {"b", {3, 1}, {0, 0, 0}}, labels({3}, {1, 0, 0})},
     .expect = {{"l", {4.25f / 6}}},
     .expect_gradients = {{"a", {2 / 3.0f, -0.16663f, 0}}}},
    {.name = "equal_but_dissimilar",
     .layer = contrastive(),
     .inputs = {{"a", {1, 2}, {1, 2}}, {"b", {1, 2}, {1, 2}}, labels({1}, {0})},
     .expect = {{"l", {0.5f}}},
     .expect_gradients = {{"a", {0, 0}}, {"b", {0, 0}}},
     .check_gradient = false},
};
INSTANTIATE_TEST_SUITE_P(ContrastiveLoss, LayerCases, testing::ValuesIn(kContrastive), case_name);

TEST(ContrastiveLoss, Refusals) {
  expect_error(
      {.layer = contrastive(), .inputs = {{"a", {2, 3}}, {"b", {2, 4}}, labels({2}, {0, 0})}},
      "bottom \"b\" of shape 2 4 must have the shape of bottom \"a\", 2 3");
  expect_error({.layer = contrastive(),
                .inputs = {{"a", {2, 3, 2, 1}}, {"b", {2, 3, 2, 1}}, labels({2}, {0, 0})}},
               "must have samples and values (further axes of size 1)");
  expect_error({.layer = contrastive(), .inputs = {{"a", {2, 3}}, {"b", {2, 3}}, labels({1}, {0})}},
               "bottom \"label\" must hold 2 labels");
}

}  // namespace
}  // namespace crema
