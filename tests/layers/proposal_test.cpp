// Proposal, and types that are not built in.
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string proposal(const std::string& fields, const std::string& tops = "") {
  return "layer { name: \"l\" type: \"Proposal\" bottom: \"score\" bottom: \"code\" bottom: "
         "\"info\" top: \"y\" " +
         tops + " proposal_param { " + fields + " } }";
}
LayerInput fixed(const std::string& name, const Shape& shape, const std::vector<float>& values) {
  return {.name = name, .shape = shape, .values = values, .gradient = false};
}
const std::string kOneAnchor = "ratio: 1 scale: 1 ";

// Two cells, one anchor of 16 x 16: (0, 0, 16, 16) and (16, 0, 32, 16) without codes.
std::vector<LayerInput> two_cells(const std::vector<float>& codes,
                                  const std::vector<float>& info = {20, 40, 1}) {
  return {fixed("score", {1, 2, 1, 2}, {0.4f, 0.1f, 0.6f, 0.9f}),
          fixed("code", {1, 4, 1, 2}, codes), fixed("info", {1, 3}, info)};
}
const std::vector<float> kStill(8, 0.0f);

LayerCase make_case(const std::string& name, const std::string& fields,
                    const std::vector<LayerInput>& inputs, const std::vector<float>& rows,
                    const std::vector<float>& scores) {
  const auto count = static_cast<int64_t>(scores.size());
  return {.name = name,
          .layer = proposal(kOneAnchor + fields, "top: \"s\""),
          .inputs = inputs,
          .expect = {{"y", rows}, {"s", scores}},
          .shapes = {{"y", {count, 5}}, {"s", {count, 1}}},
          .backward = false};
}

const std::vector<LayerCase> kCases = {
    make_case("sorted_by_score", "", two_cells(kStill), {0, 16, 0, 32, 16, 0, 0, 0, 16, 16},
              {0.9f, 0.6f}),
    make_case("cut_to_the_picture", "min_size: 10", two_cells(kStill, {12, 30, 1}),
              {0, 16, 0, 29, 11, 0, 0, 0, 16, 11}, {0.9f, 0.6f}),
    make_case("small_ones_go", "min_size: 15", two_cells(kStill, {20, 30, 1}), {0, 0, 0, 16, 16},
              {0.6f}),
    make_case("scale_of_the_picture", "min_size: 8", two_cells(kStill, {20, 30, 2}),
              {0, 0, 0, 16, 16}, {0.6f}),
    // The first moves by a quarter to the right and down, and grows no further than the picture.
    make_case("codes", "nms_thresh: 1", two_cells({0.25f, 0, 0.125f, 0, 0, 0, 0, 0}),
              {0, 16, 0, 32, 16, 0, 4, 2, 20, 18}, {0.9f, 0.6f}),
    make_case("suppressed", "nms_thresh: 0.2", two_cells({0.75f, 0, 0, 0, 0, 0, 0, 0}),
              {0, 16, 0, 32, 16}, {0.9f}),
    make_case("before_suppression", "pre_nms_topn: 1", two_cells(kStill), {0, 16, 0, 32, 16},
              {0.9f}),
    make_case("after_suppression", "post_nms_topn: 1", two_cells(kStill), {0, 16, 0, 32, 16},
              {0.9f}),
};
INSTANTIATE_TEST_SUITE_P(Proposal, LayerCases, testing::ValuesIn(kCases), case_name);

/// Cell (20, 20) of 30 x 30, anchor `anchor` of nine best.
LayerCase nine_anchors(const std::string& layer, int64_t anchor) {
  std::vector<float> scores(18 * 900, 0.0f);
  scores[static_cast<size_t>((9 + anchor) * 900 + 20 * 30 + 20)] = 1;
  return {.layer = layer,
          .inputs = {fixed("score", {1, 18, 30, 30}, scores),
                     fixed("code", {1, 36, 30, 30}, std::vector<float>(36 * 900, 0.0f)),
                     fixed("info", {1, 3}, {2000, 2000, 1})},
          .backward = false};
}

// Ren et al.'s anchors: (-84, -40, 99, 55), ..., (-168, -344, 183, 359) around (320, 320), the last
// corner one further as their code has it.
TEST(Proposal, AnchorsOfFasterRcnn) {
  const std::string one = proposal("post_nms_topn: 1");
  EXPECT_EQ(run_layer(nine_anchors(one, 0)).blobs.at("y"),
            (std::vector<float>{0, 236, 280, 420, 376}));
  EXPECT_EQ(run_layer(nine_anchors(one, 8)).blobs.at("y"),
            (std::vector<float>{0, 152, 0, 504, 680}));
}

TEST(Proposal, IsThePythonLayerOfRcnn) {
  LayerCase test = nine_anchors(
      "layer { name: \"l\" type: \"Python\" bottom: \"score\" bottom: \"code\" bottom: \"info\" "
      "top: "
      "\"y\" python_param { module: \"rpn.proposal_layer\" layer: \"ProposalLayer\" param_str: "
      "\"'feat_stride': 16\" } }",
      0);
  test.phase = TEST;
  const LayerRun run = run_layer(test);
  EXPECT_EQ(run.shapes.at("y")[1], 5);
  EXPECT_LE(run.shapes.at("y")[0], 300);
  const std::vector<float>& rows = run.blobs.at("y");
  EXPECT_EQ(std::vector<float>(rows.begin(), rows.begin() + 5),
            (std::vector<float>{0, 236, 280, 420, 376}));
}

std::string python(const std::string& param_str) {
  return "layer { name: \"l\" type: \"Python\" bottom: \"score\" bottom: \"code\" bottom: \"info\" "
         "top: \"y\" python_param { module: \"rpn.proposal_layer\" layer: \"ProposalLayer\" "
         "param_str: \"" +
         param_str + "\" } }";
}

/// PVANet's and FPN's ways to write them.
TEST(Proposal, ReadsAnchorsOfThePythonLayer) {
  const auto first_row = [](const std::string& layer) {
    LayerCase test = nine_anchors(layer, 0);
    test.phase = TEST;
    const std::vector<float> rows = run_layer(test).blobs.at("y");
    return std::vector<float>(rows.begin(), rows.begin() + 5);
  };
  const std::vector<float> usual = {0, 236, 280, 420, 376};
  EXPECT_EQ(first_row(python("{'feat_stride': 16, 'scales': [8, 16, 32], 'ratios': [0.5, 1, 2]}")),
            usual);
  EXPECT_EQ(first_row(python("'feat_stride': 16\\n'scales': !!python/tuple [8, 16, 32]")), usual);
  EXPECT_NE(first_row(python("'feat_stride': 16, 'scales': (4, 16, 32, )")), usual);
}

TEST(Proposal, Refusals) {
  expect_error(python("'scales': 8"), "param_str: scales must be a list of numbers, [8, 16, 32]");
  expect_error(python("'ratios': [1, x]"), "param_str: ratios: \" x\" is no number above 0");

  expect_error({.layer = proposal(""), .inputs = two_cells(kStill), .backward = false},
               "bottom \"score\" of shape 1 2 1 2 must have 18 channels");
  expect_error({.layer = proposal("ratio: 0"), .inputs = two_cells(kStill), .backward = false},
               "ratio: must be above 0, got 0");
  expect_error(
      "layer { name: \"l\" type: \"Python\" top: \"y\" python_param { module: \"pyloss\" "
      "layer: \"EuclideanLossLayer\" } }",
      "Python layers are not supported (this one is EuclideanLossLayer of pyloss); of them only "
      "R-CNN's proposal layer");
}

TEST(UnknownTypes, NameTheirFork) {
  expect_error("layer { name: \"l\" top: \"y\" }", "type: is missing");
  expect_error("layer { name: \"l\" type: \"RegionLoss\" top: \"y\" }",
               "unknown layer type \"RegionLoss\" (a layer of the YOLOv2 fork)");
  expect_error("layer { name: \"l\" type: \"Permut\" top: \"y\" }",
               "unknown layer type \"Permut\" (did you mean Permute?)");
}

}  // namespace
}  // namespace crema
