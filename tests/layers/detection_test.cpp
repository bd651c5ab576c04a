// PriorBox, DetectionOutput, DetectionEvaluate.
#include <cmath>

#include "base/file.h"
#include "base/test_folder.h"
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string prior_box(const std::string& fields) {
  return "layer { name: \"l\" type: \"PriorBox\" bottom: \"map\" bottom: \"data\" top: \"y\" "
         "prior_box_param { " +
         fields + " } }";
}
LayerInput input(const std::string& name, const Shape& shape,
                 const std::vector<float>& values = {}) {
  return {.name = name, .shape = shape, .values = values, .gradient = false};
}

LayerCase prior_case(const std::string& name, const std::string& fields, const Shape& map,
                     const std::vector<float>& expected) {
  return {.name = name,
          .layer = prior_box(fields),
          .inputs = {input("map", map), input("data", {1, 3, 10, 20})},
          .expect = {{"y", expected}},
          .shapes = {{"y", {1, 2, static_cast<int64_t>(expected.size()) / 2}}},
          .backward = false};
}

const float kLong = 2 * std::sqrt(2.0f), kShort = std::sqrt(2.0f);

const std::vector<LayerCase> kPriorBox = {
    prior_case("square", "min_size: 4", {1, 8, 1, 1},
               {0.4f, 0.3f, 0.6f, 0.7f, 0.1f, 0.1f, 0.1f, 0.1f}),
    prior_case(
        "max_size_ratios_and_variances",
        "min_size: 4 max_size: 9 aspect_ratio: 2 aspect_ratio: 1 variance: 0.1 variance: 0.1 "
        "variance: 0.2 variance: 0.2 img_size: 10",
        {1, 8, 1, 1},
        {0.3f,
         0.3f,
         0.7f,
         0.7f,  //
         0.2f,
         0.2f,
         0.8f,
         0.8f,  //
         (5 - kLong) / 10,
         (5 - kShort) / 10,
         (5 + kLong) / 10,
         (5 + kShort) / 10,  //
         (5 - kShort) / 10,
         (5 - kLong) / 10,
         (5 + kShort) / 10,
         (5 + kLong) / 10,  //
         0.1f,
         0.1f,
         0.2f,
         0.2f,
         0.1f,
         0.1f,
         0.2f,
         0.2f,  //
         0.1f,
         0.1f,
         0.2f,
         0.2f,
         0.1f,
         0.1f,
         0.2f,
         0.2f}),
    prior_case("cells_row_by_row_clipped", "min_size: 10 clip: true variance: 0.5", {1, 8, 1, 2},
               {0, 0, 0.5f, 1, 0.5f, 0, 1, 1, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f}),
    prior_case("step_and_offset", "min_size: 2 step: 4 offset: 0", {1, 8, 2, 1},
               {-0.05f, -0.1f, 0.05f, 0.1f, -0.05f, 0.3f, 0.05f, 0.5f,  //
                0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f}),
    // Of 5.84 and 20.9 the whole numbers count: sides of 5 and of sqrt(5 x 20).
    prior_case("sizes_without_fractions", "min_size: 5.84 max_size: 20.9 img_size: 20",
               {1, 8, 1, 1},
               {0.375f, 0.375f, 0.625f, 0.625f, 0.25f, 0.25f, 0.75f, 0.75f,  //
                0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f}),
    prior_case("no_flip", "min_size: 4 aspect_ratio: 4 flip: false img_size: 10", {1, 8, 1, 1},
               {0.3f, 0.3f, 0.7f, 0.7f, 0.1f, 0.4f, 0.9f, 0.6f,  //
                0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f}),
};
INSTANTIATE_TEST_SUITE_P(PriorBox, LayerCases, testing::ValuesIn(kPriorBox), case_name);

TEST(PriorBox, Refusals) {
  const auto bad = [](const std::string& fields, const std::string& text) {
    expect_error({.layer = prior_box(fields),
                  .inputs = {input("map", {1, 2, 2, 2}), input("data", {1, 3, 4, 4})},
                  .backward = false},
                 text);
  };
  bad("", "min_size: missing");
  bad("min_size: 0.9", "min_size: must be at least 1, got 0.9");
  bad("min_size: 4 max_size: 4", "max_size: 4 must be above its min_size 4");
  bad("min_size: 4 max_size: 5 max_size: 6", "max_size: 2 values, but 1 of min_size");
  bad("min_size: 4 variance: 1 variance: 2", "variance: 2 values, but 1 or 4 are possible");
  bad("min_size: 4 aspect_ratio: 0", "aspect_ratio: must be above 0");
  bad("min_size: 4 img_h: 3", "img_h and img_w must be given together");
}

// Two priors far from each other, and a third that overlaps the first by 0.6.
const LayerInput kPriors =
    input("prior", {1, 2, 12}, {0.1f,  0.1f, 0.3f,  0.3f, 0.6f, 0.6f, 0.8f, 0.8f,  //
                                0.15f, 0.1f, 0.35f, 0.3f,                          //
                                0.1f,  0.1f, 0.2f,  0.2f, 0.1f, 0.1f, 0.2f, 0.2f,  //
                                0.1f,  0.1f, 0.2f,  0.2f});

std::string output(const std::string& fields) {
  return "layer { name: \"l\" type: \"DetectionOutput\" bottom: \"loc\" bottom: \"conf\" bottom: "
         "\"prior\" top: \"y\" detection_output_param { " +
         fields + " } }";
}
LayerCase output_case(const std::string& name, const std::string& fields,
                      const std::vector<float>& codes, const std::vector<float>& scores,
                      const std::vector<float>& expected) {
  const auto batch = static_cast<int64_t>(scores.size()) / 6;
  const auto count = static_cast<int64_t>(codes.size()) / batch;
  return {
      .name = name,
      .layer = output(fields),
      .inputs = {input("loc", {batch, count}, codes), input("conf", {batch, 6}, scores), kPriors},
      .expect = {{"y", expected}},
      .shapes = {{"y", {1, 1, static_cast<int64_t>(expected.size()) / 7, 7}}},
      .backward = false};
}
const std::vector<float> kStill(12, 0.0f);
const std::vector<float> kScores = {0.1f, 0.9f, 0.8f, 0.2f, 0.3f, 0.7f};

const std::vector<LayerCase> kOutput = {
    output_case("suppressed_and_sorted", "num_classes: 2 nms_param { nms_threshold: 0.5 }", kStill,
                kScores, {0, 1, 0.9f, 0.1f, 0.1f, 0.3f, 0.3f, 0, 1, 0.2f, 0.6f, 0.6f, 0.8f, 0.8f}),
    output_case("threshold", "num_classes: 2 confidence_threshold: 0.2", kStill, kScores,
                {0, 1, 0.9f, 0.1f, 0.1f, 0.3f, 0.3f}),
    output_case("top_k_before_suppression",
                "num_classes: 2 nms_param { nms_threshold: 0.9 top_k: 2 }", kStill, kScores,
                {0, 1, 0.9f, 0.1f, 0.1f, 0.3f, 0.3f, 0, 1, 0.7f, 0.15f, 0.1f, 0.35f, 0.3f}),
    output_case("keep_top_k_over_classes", "num_classes: 2 background_label_id: -1 keep_top_k: 2",
                kStill, kScores,
                {0, 0, 0.8f, 0.6f, 0.6f, 0.8f, 0.8f, 0, 1, 0.9f, 0.1f, 0.1f, 0.3f, 0.3f}),
    output_case("nothing_found", "num_classes: 2 confidence_threshold: 0.95",
                std::vector<float>(24, 0.0f),
                {0.1f, 0.9f, 0.8f, 0.2f, 0.3f, 0.7f, 0.1f, 0.9f, 0.8f, 0.2f, 0.3f, 0.7f},
                {0, -1, -1, -1, -1, -1, -1, 1, -1, -1, -1, -1, -1, -1}),
    // Prior 0 has centre 0.2, 0.2 and size 0.2.
    output_case("center_size", "num_classes: 2 code_type: CENTER_SIZE confidence_threshold: 0.8",
                {1, -1, 0, 5 * std::log(2.0f), 0, 0, 0, 0, 0, 0, 0, 0}, kScores,
                {0, 1, 0.9f, 0.12f, -0.02f, 0.32f, 0.38f}),
    output_case("variance_in_target",
                "num_classes: 2 variance_encoded_in_target: true confidence_threshold: 0.8",
                {0.05f, 0, 0, -0.1f, 0, 0, 0, 0, 0, 0, 0, 0}, kScores,
                {0, 1, 0.9f, 0.15f, 0.1f, 0.3f, 0.2f}),
    output_case("corner_size", "num_classes: 2 code_type: CORNER_SIZE confidence_threshold: 0.8",
                {1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}, kScores,
                {0, 1, 0.9f, 0.12f, 0.1f, 0.3f, 0.34f}),
    output_case("a_location_for_each_class",
                "num_classes: 2 share_location: false variance_encoded_in_target: true "
                "confidence_threshold: 0.8",
                {9, 9, 9, 9, 0.1f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                kScores, {0, 1, 0.9f, 0.2f, 0.1f, 0.3f, 0.3f}),
};
INSTANTIATE_TEST_SUITE_P(DetectionOutput, LayerCases, testing::ValuesIn(kOutput), case_name);

TEST(DetectionOutput, AdaptiveThreshold) {
  // Overlap 0.6 passes at 0.7; after one kept box the threshold is 0.7 * 0.8 = 0.56.
  const LayerCase kept =
      output_case("", "num_classes: 2 nms_param { nms_threshold: 0.7 }", kStill, kScores, {});
  EXPECT_EQ(run_layer(kept).shapes.at("y")[2], 3);
  const LayerCase shrunk = output_case(
      "", "num_classes: 2 nms_param { nms_threshold: 0.7 eta: 0.8 }", kStill, kScores, {});
  EXPECT_EQ(run_layer(shrunk).shapes.at("y")[2], 2);
}

TEST(DetectionOutput, Refusals) {
  LayerCase test = output_case("", "num_classes: 3", kStill, kScores, {});
  expect_error(test, "bottom \"conf\" of shape 1 6 must hold 3 scores for each of 3 priors");
  test.layer = output("");
  expect_error(test, "num_classes: must be given");
  test.layer = output("num_classes: 2 share_location: false");
  expect_error(test,
               "bottom \"loc\" of shape 1 12 must hold 4 numbers for each of 3 priors and each");
  test.layer = output("num_classes: 2 nms_param { eta: 2 }");
  expect_error(test, "eta: must be above 0, at most 1");
}

std::string evaluate(const std::string& fields) {
  return "layer { name: \"l\" type: \"DetectionEvaluate\" bottom: \"found\" bottom: \"truth\" top: "
         "\"y\" detection_evaluate_param { " +
         fields + " } }";
}
// Picture 0: two boxes of class 1, a difficult one of class 2. Picture 1: none.
const LayerInput kTruth = input("truth", {1, 1, 4, 8}, {0,  1,  0,  0.1f, 0.1f, 0.3f, 0.3f, 0,  //
                                                        0,  1,  1,  0.6f, 0.6f, 0.8f, 0.8f, 0,  //
                                                        0,  2,  0,  0.4f, 0.4f, 0.5f, 0.5f, 1,  //
                                                        -1, -1, -1, -1,   -1,   -1,   -1,   -1});
const LayerInput kFound = input("found", {1, 1, 5, 7}, {0, 1, 0.6f, 0.1f, 0.1f, 0.3f, 0.31f,  //
                                                        0, 1, 0.9f, 0.1f, 0.1f, 0.3f, 0.3f,   //
                                                        0, 2, 0.5f, 0.4f, 0.4f, 0.5f, 0.5f,   //
                                                        1, 1, 0.8f, 0.1f, 0.1f, 0.3f, 0.3f,   //
                                                        0, 1, 0.7f, 0.1f, 0.6f, 0.3f, 0.8f});

const std::vector<LayerCase> kEvaluate = {
    {.name = "difficult_ones_count",
     .layer = evaluate("num_classes: 3"),
     .inputs = {kFound, kTruth},
     .expect = {{"y", {-1, 1, 2,    -1, -1, -1, 2, 1,    -1, -1,                    //
                       0,  1, 0.9f, 1,  0,  0,  1, 0.7f, 0,  1,  0, 1, 0.6f, 0, 1,  //
                       0,  2, 0.5f, 1,  0,  1,  1, 0.8f, 0,  1}}},
     .shapes = {{"y", {1, 1, 7, 5}}},
     .backward = false},
    {.name = "difficult_ones_do_not",
     .layer = evaluate("num_classes: 3 evaluate_difficult_gt: false"),
     .inputs = {kFound, kTruth},
     .expect = {{"y", {-1, 1, 2,    -1, -1, -1, 2, 0,    -1, -1,                    //
                       0,  1, 0.9f, 1,  0,  0,  1, 0.7f, 0,  1,  0, 1, 0.6f, 0, 1,  //
                       0,  2, 0.5f, 0,  0,  1,  1, 0.8f, 0,  1}}},
     .backward = false},
};
INSTANTIATE_TEST_SUITE_P(DetectionEvaluate, LayerCases, testing::ValuesIn(kEvaluate), case_name);

/// Fractions give 0.5 / 0.75 of the first picture's box; its pixels, corners included, give
/// (2 + 1) (4 + 1) / ((3 + 1) (4 + 1)) = 0.75.
TEST(DetectionEvaluate, ComparesInPixelsWithSizes) {
  const TestFolder folder;
  const std::string sizes = folder / "sizes.txt";
  write_file(sizes, "one 4 4\ntwo 400 400\n");
  const LayerInput truth =
      input("truth", {1, 1, 2, 8}, {0, 1, 0, 0.0f, 0, 0.75f, 1, 0, 1, 1, 0, 0.0f, 0, 0.75f, 1, 0});
  const LayerInput found =
      input("found", {1, 1, 2, 7}, {0, 1, 0.9f, 0.0f, 0, 0.5f, 1, 1, 1, 0.9f, 0.0f, 0, 0.5f, 1});
  LayerCase test{
      .name = "sizes",
      .layer = evaluate("num_classes: 2 overlap_threshold: 0.7 name_size_file: '" + sizes + "'"),
      .inputs = {found, truth},
      .expect = {{"y", {-1, 1, 2, -1, -1, 0, 1, 0.9f, 1, 0, 1, 1, 0.9f, 0, 1}}},
      .backward = false};
  check_layer(test, make_ops({}));
  write_file(sizes, "one 4\n");
  expect_error(test, "each line must be a name, a height and a width");
}

TEST(DetectionEvaluate, Refusals) {
  LayerCase test{
      .layer = evaluate("num_classes: 2"), .inputs = {kFound, kTruth}, .backward = false};
  expect_error(test, "class 2 of box 2 (picture 0 of the batch) must be in 0..1");
  test.layer = evaluate("");
  expect_error(test, "num_classes: must be given");
  test.layer = evaluate("num_classes: 3");
  test.inputs[0].shape = {1, 1, 7, 5};
  expect_error(test, "bottom \"found\" of shape 1 1 7 5 must be detections");
}

}  // namespace
}  // namespace crema
