// Accuracy: ties, NaN, top_k, ignored labels, classes that are absent.
#include <cmath>

#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields = "", const std::string& more_tops = "") {
  return "layer { name: \"accuracy\" type: \"Accuracy\" bottom: \"x\" bottom: \"label\" top: "
         "\"a\" " +
         more_tops + " accuracy_param { " + fields + " } }";
}

LayerInput labels(const Shape& shape, const std::vector<float>& values) {
  return {.name = "label", .shape = shape, .values = values, .gradient = false};
}

LayerCase row(const std::string& name, const std::string& fields, std::vector<LayerInput> inputs,
              float accuracy) {
  return {.name = name,
          .layer = layer(fields),
          .inputs = std::move(inputs),
          .expect = {{"a", {accuracy}}},
          .shapes = {{"a", Shape{}}},
          .phase = TEST,
          .backward = false};
}

const std::vector<float> kScores = {1, 2, 3, 3, 2, 1, 1, 3, 2, 2, 1, 3};  // ranks of 4 samples

const std::vector<LayerCase> kCases = {
    row("top1", "", {{"x", {4, 3}, kScores}, labels({4}, {2, 0, 0, 1})}, 0.5f),
    row("top2", "top_k: 2", {{"x", {4, 3}, kScores}, labels({4}, {2, 1, 0, 1})}, 0.5f),
    row("ignored", "ignore_label: 1", {{"x", {4, 3}, kScores}, labels({4}, {2, 0, 0, 1})},
        2 / 3.0f),
    row("axis", "axis: -1", {{"x", {2, 2, 3}, kScores}, labels({2, 2}, {2, 0, 0, 0})}, 0.5f),
    row("spatial", "", {{"x", {1, 2, 1, 2}, {1, 2, 0, 3}}, labels({1, 1, 1, 2}, {0, 1})}, 1),
    row("B33_ties_top1", "", {{"x", {1, 4}, {.25f, .25f, .25f, .25f}}, labels({1}, {2})}, 0),
    row("B33_ties_top3", "top_k: 3", {{"x", {1, 4}, {.25f, .25f, .25f, .25f}}, labels({1}, {2})},
        0),
    row("B33_ties_top4", "top_k: 4", {{"x", {1, 4}, {.25f, .25f, .25f, .25f}}, labels({1}, {2})},
        1),
    row("B32_all_ignored", "ignore_label: 255",
        {{"x", {2, 3}, {1, 2, 3, 4, 5, 6}}, labels({2}, {255, 255})}, 0),
    row("nan_is_never_correct", "",
        {{"x", {3, 2}, {NAN, NAN, 1, NAN, 2, 1}}, labels({3}, {0, 0, 0})}, 1 / 3.0f),
    {.name = "B32_per_class_with_an_absent_one",
     .layer = layer("", "top: \"c\""),
     .inputs = {{"x", {4, 3}, kScores}, labels({4}, {0, 0, 1, 0})},
     .expect = {{"a", {0.5f}}, {"c", {1 / 3.0f, 1, 0}}},
     .shapes = {{"c", {3}}},
     .phase = TEST,
     .backward = false},
};
INSTANTIATE_TEST_SUITE_P(Accuracy, LayerCases, testing::ValuesIn(kCases), case_name);

TEST(Accuracy, WarnsOfNanOnce) {
  LayerCase test = row("nan", "", {{"x", {1, 2}, {NAN, 1}}, labels({1}, {1})}, 0);
  testing::internal::CaptureStderr();
  run_layer(test, {.forwards = 3});
  const std::string log = testing::internal::GetCapturedStderr();
  const std::string text = "bottom \"x\" holds NaN";
  const size_t first = log.find(text);
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find(text, first + 1), std::string::npos) << log;
}

TEST(Accuracy, NoGradientFlowsThroughIt) {
  LayerCase test = row("with_loss", "", {{"x", {4, 3}, kScores}, labels({4}, {2, 0, 0, 1})}, 0.5f);
  test.layer += "layer { name: \"s\" type: \"Reduction\" bottom: \"x\" top: \"s\" loss_weight: 1 }";
  test.backward = true;
  test.no_loss = {"a"};
  EXPECT_EQ(run_layer(test).gradients.at("x"), std::vector<float>(12, 1));
}

TEST(Accuracy, Refusals) {
  expect_error({.layer = layer(), .inputs = {{"x", {2, 3}}, labels({3}, {0, 0, 0})}},
               "bottom \"label\" must hold 2 labels");
  expect_error({.layer = layer("top_k: 0"), .inputs = {{"x", {2, 3}}, labels({2}, {0, 0})}},
               "top_k: must be at least 1");
}

TEST(Reports, B40_TopKBeyondTheClasses) {
  expect_error({.layer = layer("top_k: 5"), .inputs = {{"x", {2, 3}}, labels({2}, {0, 0})}},
               "top_k: 5 must not exceed the 3 classes of bottom \"x\"");
}

TEST(Reports, B29_AccuracyLabelOutOfRange) {
  LayerCase test = row("bad", "", {{"x", {3, 3}}, labels({3}, {0, 1, 7})}, 0);
  expect_error(test, "label 7 of sample 2 must be in 0..2");
  test.inputs[1].values = {0, -1, 0};
  expect_error(test, "label -1 of sample 1 must be in 0..2");
}

}  // namespace
}  // namespace crema
