// SoftmaxWithLoss: divisors, ignored and bad labels, extreme scores, the second top.
#include <cmath>

#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields = "", const std::string& more_tops = "") {
  return "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"x\" bottom: \"label\" "
         "top: \"l\" " +
         more_tops + fields + " }";
}

LayerInput labels(const Shape& shape, const std::vector<float>& values) {
  return {.name = "label", .shape = shape, .values = values, .gradient = false};
}
LayerInput drawn_labels(const Shape& shape, float classes) {
  return {.name = "label",
          .shape = shape,
          .draw = Draw::integer,
          .low = 0,
          .high = classes,
          .gradient = false};
}

/// Two positions of two samples with equal scores: each position costs log 2.
LayerCase divisor_case(const std::string& name, const std::string& loss_param, float divisor) {
  return {.name = name,
          .layer = layer("loss_param { " + loss_param + " }"),
          .inputs = {{"x", {2, 2, 2}, std::vector<float>(8, 0)}, labels({2, 2}, {0, 1, 1, 1})},
          .expect = {{"l", {std::log(2.0f) * (divisor < 0 ? 1 : 4) / std::abs(divisor)}}}};
}

const std::vector<LayerCase> kCases = {
    {.name = "rows", .layer = layer(), .inputs = {{"x", {6, 5}}, drawn_labels({6}, 5)}},
    {.name = "spatial",
     .layer = layer(),
     .inputs = {{"x", {2, 5, 3, 4}}, drawn_labels({2, 1, 3, 4}, 5)}},
    {.name = "last_axis",
     .layer = layer("softmax_param { axis: -1 }"),
     .inputs = {{"x", {2, 3, 5}}, drawn_labels({2, 3}, 5)}},
    {.name = "ignored_labels",
     .layer = layer("loss_param { ignore_label: 255 }"),
     .inputs = {{"x", {4, 3}}, labels({4}, {0, 255, 2, 255})}},
    {.name = "negative_ignored_label",
     .layer = layer("loss_param { ignore_label: -1 }"),
     .inputs = {{"x", {3, 3}}, labels({3}, {0, -1, 2})}},
    {.name = "probabilities_top",
     .layer = layer("", "top: \"p\" "),
     .inputs = {{"x", {1, 2}, {0, 0}}, labels({1}, {1})},
     .expect = {{"l", {std::log(2.0f)}}, {"p", {0.5f, 0.5f}}},
     .expect_gradients = {{"x", {0.5f, -0.5f}}},
     .no_loss = {"p"}},
    {.name = "loss_weight",
     .layer = layer("loss_weight: 3 "),
     .inputs = {{"x", {1, 2}, {0, 0}}, labels({1}, {1})},
     .expect_gradients = {{"x", {1.5f, -1.5f}}}},
    {.name = "class_weights",  // equal scores: log 2 for each, weighted 3 and 0.5, over 2
     .layer = layer("loss_param { class_weight: 3 class_weight: 0.5 }"),
     .inputs = {{"x", {2, 2}, {0, 0, 0, 0}}, labels({2}, {0, 1})},
     .expect = {{"l", {std::log(2.0f) * 3.5f / 2}}},
     .expect_gradients = {{"x", {-0.75f, 0.75f, 0.125f, -0.125f}}}},
    {.name = "label_smoothing",  // targets 0.95 and 0.05 of p = 0.5, 0.5
     .layer = layer("loss_param { label_smoothing: 0.1 }"),
     .inputs = {{"x", {1, 2}, {0, 0}}, labels({1}, {1})},
     .expect = {{"l", {std::log(2.0f)}}},
     .expect_gradients = {{"x", {0.45f, -0.45f}}}},
    {.name = "weights_and_smoothing",
     .layer = layer("loss_param { class_weight: 3 class_weight: 0.5 class_weight: 1 "
                    "label_smoothing: 0.3 ignore_label: 2 }"),
     .inputs = {{"x", {4, 3, 2}}, drawn_labels({4, 2}, 3)}},
    {.name = "labels_truncate",
     .layer = layer(),
     .inputs = {{"x", {2, 2}, {0, 0, 0, 0}}, labels({2}, {1.9f, -0.9f})},
     .expect_gradients = {{"x", {0.25f, -0.25f, -0.25f, 0.25f}}}},
    divisor_case("valid", "", 4),
    divisor_case("full", "normalization: FULL", 4),
    divisor_case("batch_size", "normalization: BATCH_SIZE", 2),
    divisor_case("none", "normalization: NONE", 1),
    divisor_case("pre_fixed", "normalization: PRE_FIXED pre_fixed_normalizer: 8", 8),
    divisor_case("pre_fixed_below_1", "normalization: PRE_FIXED pre_fixed_normalizer: 0.5", 1),
    divisor_case("pre_fixed_not_in_force", "pre_fixed_normalizer: 8", 4),
    divisor_case("normalize_true", "normalize: true", 4),
    divisor_case("normalize_false", "normalize: false", 2),
    divisor_case("normalization_wins", "normalization: NONE normalize: true", 1),
    divisor_case("valid_with_ignored", "ignore_label: 1", -1),
    divisor_case("full_with_ignored", "ignore_label: 1 normalization: FULL", -4),
};
INSTANTIATE_TEST_SUITE_P(SoftmaxWithLoss, LayerCases, testing::ValuesIn(kCases), case_name);

TEST(SoftmaxWithLoss, Refusals) {
  expect_error({.layer = layer("loss_param { pre_fixed_normalizer: 0 }"),
                .inputs = {{"x", {2, 2}}, labels({2}, {0, 0})}},
               "pre_fixed_normalizer: must be above 0, not 0");
  expect_error({.layer = layer("loss_param { class_weight: 1 class_weight: 2 }"),
                .inputs = {{"x", {2, 3}}, labels({2}, {0, 0})}},
               "class_weight is given 2 times, the 3 classes need one each");
  expect_error({.layer = layer("loss_param { class_weight: 1 class_weight: -2 }"),
                .inputs = {{"x", {2, 2}}, labels({2}, {0, 0})}},
               "class_weight must not be negative: -2");
  expect_error({.layer = layer("loss_param { label_smoothing: 1 }"),
                .inputs = {{"x", {2, 3}}, labels({2}, {0, 0})}},
               "label_smoothing must be in [0, 1), not 1");
  expect_error({.layer = layer(), .inputs = {{"x", {2, 3}}, labels({3}, {0, 0, 0})}},
               "bottom \"label\" must hold 2 labels (2 before the class axis x 1 behind it), but "
               "has shape 3");
  expect_error(
      {.layer = layer("softmax_param { axis: 2 }"), .inputs = {{"x", {2, 3}}, labels({2}, {0, 0})}},
      "axis 2 is out of range");
}

TEST(SoftmaxWithLoss, RefusesAGradientOfLabels) {
  LayerInput label = labels({2}, {0, 0});
  expect_error({.layer = "layer { name: \"p\" type: \"Parameter\" top: \"label\" parameter_param { "
                         "shape { dim: 2 } } }" +
                         layer(),
                .inputs = {{"x", {2, 3}}}},
               "bottom \"label\" takes no gradient");
}

TEST(Reports, B29_SoftmaxWithLossLabelOutOfRange) {
  expect_error({.layer = layer(), .inputs = {{"x", {3, 3}}, labels({3}, {0, 1, 7})}},
               "label 7 of sample 2 must be in 0..2");
  expect_error({.layer = layer(), .inputs = {{"x", {3, 3}}, labels({3}, {0, -1, 9})}},
               "label -1 of sample 1 must be in 0..2");
  expect_error({.layer = layer(), .inputs = {{"x", {1, 3, 2}}, labels({1, 2}, {0, 3})}},
               "label 3 of sample 0 (position 1) must be in 0..2");
  expect_error({.layer = layer(), .inputs = {{"x", {1, 3}}, labels({1}, {NAN})}}, "label nan");
  expect_error({.layer = layer("loss_param { ignore_label: 255 }"),
                .inputs = {{"x", {2, 3}}, labels({2}, {255, 254})}},
               "label 254 of sample 1");
}

const std::vector<LayerCase> kReports = {
    {.name = "B31_all_labels_ignored",
     .layer = layer("loss_param { ignore_label: 255 }"),
     .inputs = {{"x", {4, 3}}, labels({4}, {255, 255, 255, 255})},
     .expect = {{"l", {0}}},
     .expect_gradients = {{"x", std::vector<float>(12, 0)}}},
    {.name = "B36_loss_of_an_underflowed_probability",
     .layer = layer(),
     .inputs = {{"x", {1, 2}, {0, 200}}, labels({1}, {0})},
     .expect = {{"l", {87.3365f}}},
     .expect_gradients = {{"x", {-1, 1}}},
     .check_gradient = false},
    {.name = "B36_huge_scores",
     .layer = layer(),
     .inputs = {{"x", {1, 2}, {1e30f, -1e30f}}, labels({1}, {1})},
     .expect = {{"l", {87.3365f}}},
     .check_gradient = false},
    {.name = "B36_nan_is_shown",
     .layer = layer(),
     .inputs = {{"x", {1, 2}, {0, NAN}}, labels({1}, {0})},
     .expect = {{"l", {NAN}}},
     .check_gradient = false},
};
INSTANTIATE_TEST_SUITE_P(ReportsSoftmaxWithLoss, LayerCases, testing::ValuesIn(kReports),
                         case_name);

TEST(Reports, B35_LossWeightZeroPushesNothing) {
  const std::string second =
      "layer { name: \"second\" type: \"SoftmaxWithLoss\" bottom: \"y\" bottom: \"label\" top: "
      "\"l2\" loss_weight: 0 }";
  LayerCase test{
      .name = "B35",
      .layer =
          "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"x\" top: \"y\" "
          "inner_product_param { num_output: 3 } }"
          "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"y\" bottom: \"label\" "
          "top: \"l\" }",
      .inputs = {{"x", {4, 5}}, drawn_labels({4}, 3)},
      .no_loss = {"l2"}};
  const LayerRun without = run_layer(test);
  test.layer += second;
  const LayerRun with = run_layer(test);
  EXPECT_EQ(without.param_gradients, with.param_gradients);
  EXPECT_EQ(with.blobs.at("l"), with.blobs.at("l2"));
}

}  // namespace
}  // namespace crema
