// MultiBoxLoss: matching, mining and both losses, by hand on four priors.
#include <cmath>

#include "layers/layer_harness.h"

namespace crema {
namespace {

// Two priors on the left of which the second overlaps the first by 1/3, two on the right.
const std::vector<float> kPriorValues = {0.1f, 0.1f, 0.3f, 0.3f, 0.2f, 0.1f, 0.4f, 0.3f,  //
                                         0.6f, 0.6f, 0.8f, 0.8f, 0.6f, 0.1f, 0.8f, 0.3f,  //
                                         0.1f, 0.1f, 0.2f, 0.2f, 0.1f, 0.1f, 0.2f, 0.2f,  //
                                         0.1f, 0.1f, 0.2f, 0.2f, 0.1f, 0.1f, 0.2f, 0.2f};

LayerInput input(const std::string& name, const Shape& shape, const std::vector<float>& values) {
  return {.name = name, .shape = shape, .values = values, .gradient = false};
}
LayerInput truth(const std::vector<float>& rows) {
  return input("truth", {1, 1, static_cast<int64_t>(rows.size()) / 8, 8}, rows);
}
/// A box of class 1 in picture 0 that is the first prior.
const std::vector<float> kOnFirst = {0, 1, 0, 0.1f, 0.1f, 0.3f, 0.3f, 0};

std::string layer(const std::string& fields, const std::string& more = "") {
  return "layer { name: \"loss\" type: \"MultiBoxLoss\" bottom: \"loc\" bottom: \"conf\" bottom: "
         "\"prior\" bottom: \"truth\" top: \"l\" multibox_loss_param { num_classes: 2 " +
         fields + " } " + more + " }";
}

LayerCase make_case(const std::string& name, const std::string& text,
                    const std::vector<float>& codes, const std::vector<float>& scores,
                    const std::vector<float>& boxes) {
  const auto batch = static_cast<int64_t>(scores.size()) / 8;
  const auto count = static_cast<int64_t>(codes.size()) / batch;
  return {.name = name,
          .layer = text,
          .inputs = {{"loc", {batch, count}, codes},
                     {"conf", {batch, 8}, scores},
                     input("prior", {1, 2, 16}, kPriorValues),
                     truth(boxes)},
          .tolerance = 2e-5f,
          .step = 1e-3f};
}

LayerCase with(LayerCase test, float loss, const BlobValues& gradients = {}) {
  test.expect = {{"l", {loss}}};
  test.expect_gradients = gradients;
  return test;
}

const std::vector<float> kNoCodes(16, 0.0f);
std::vector<float> first_code(float v) {
  std::vector<float> codes = kNoCodes;
  codes[0] = v;
  return codes;
}
// Losses as background: log(1 + e^x) of the second score with the first 0.
const std::vector<float> kScores = {0, 1, 0, 2, 0, -1, 0, 3};
float softplus(float x) { return std::log1p(std::exp(x)); }
float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

const std::vector<LayerCase> kCases = {
    // One prior matched; two of the three others are its negatives: those with scores 3 and 2.
    with(make_case("softmax_and_mining", layer("neg_pos_ratio: 2"), first_code(0.5f), kScores,
                   kOnFirst),
         0.125f + softplus(-1) + softplus(3) + softplus(2),
         {{"loc", first_code(0.5f)},
          {"conf",
           {1 - sigmoid(1), sigmoid(1) - 1, -sigmoid(2), sigmoid(2), 0, 0, -sigmoid(3),
            sigmoid(3)}}}),
    with(make_case("no_mining_l2_and_weight",
                   layer("mining_type: NONE loc_loss_type: L2 loc_weight: 3"), first_code(2),
                   kScores, kOnFirst),
         3 * 2 + softplus(-1) + softplus(2) + softplus(-1) + softplus(3)),
    with(make_case("old_field_without_mining", layer("do_neg_mining: false"), kNoCodes, kScores,
                   kOnFirst),
         softplus(-1) + softplus(2) + softplus(-1) + softplus(3)),
    // A prior that overlaps by a third is no negative at neg_overlap 0.3.
    with(make_case("overlapping_priors_are_no_negatives", layer("neg_overlap: 0.3"), kNoCodes,
                   kScores, kOnFirst),
         softplus(-1) + softplus(3) + softplus(-1)),
    with(make_case("second_prior_above_the_threshold",
                   layer("overlap_threshold: 0.3 neg_pos_ratio: 0"), kNoCodes, kScores, kOnFirst),
         // The box lies 0.1 to the left of the second prior: codes -1 (xmin) and -0.5 (xmax).
         (0.5f + 0.125f + softplus(-1) + softplus(-2)) / 2),
    with(make_case("bipartite_only",
                   layer("match_type: BIPARTITE overlap_threshold: 0.3 neg_pos_ratio: 0"), kNoCodes,
                   kScores, kOnFirst),
         softplus(-1)),
    with(make_case("logistic", layer("conf_loss_type: LOGISTIC neg_pos_ratio: 1"), kNoCodes,
                   kScores, kOnFirst),
         // Matched: class 1 wanted; the negative (score 3): class 0 wanted.
         softplus(0) + softplus(-1) + softplus(0) + softplus(3)),
    with(make_case("no_boxes", layer(""), first_code(1), kScores, {-1, -1, -1, -1, -1, -1, -1, -1}),
         0, {{"loc", kNoCodes}, {"conf", std::vector<float>(8, 0.0f)}}),
    with(make_case("divided_by_pictures",
                   layer("neg_pos_ratio: 0", "loss_param { normalization: BATCH_SIZE }"),
                   std::vector<float>(32, 0.0f), {0, 1, 0, 2, 0, -1, 0, 3, 0, 1, 0, 2, 0, -1, 0, 3},
                   {0,    1,    0,    0.1f, 0.1f, 0.3f, 0.3f, 0,    0,    1,    1,    0.6f,
                    0.6f, 0.8f, 0.8f, 0,    1,    1,    0,    0.6f, 0.1f, 0.8f, 0.3f, 0}),
         (softplus(-1) + softplus(1) + softplus(-3)) / 2),
    with(make_case("difficult_left_out", layer("use_difficult_gt: false neg_pos_ratio: 0"),
                   kNoCodes, kScores,
                   {0, 1, 0, 0.1f, 0.1f, 0.3f, 0.3f, 0, 0, 1, 1, 0.6f, 0.6f, 0.8f, 0.8f, 1}),
         softplus(-1)),
    make_case("center_size_drawn", layer("code_type: CENTER_SIZE"), {},
              {0, 1, 0, 2, 0, -1, 0, 3, 1, 1, 0.5f, 2, 0, -1, 0, 3},
              {0, 1, 0, 0.12f, 0.1f, 0.3f, 0.33f, 0, 1, 1, 1, 0.6f, 0.55f, 0.8f, 0.8f, 0}),
    with(make_case("a_location_for_each_class", layer("share_location: false neg_pos_ratio: 0"),
                   {0, 0, 0, 0, 0.5f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                    0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                   kScores, kOnFirst),
         0.125f + softplus(-1)),
    // The predictions, not the priors, are matched: the third one is moved onto the box.
    with(make_case("matched_by_prediction",
                   layer("use_prior_for_matching: false encode_variance_in_target: true "
                         "neg_pos_ratio: 0"),
                   {0.5f, 0.5f, 0.5f, 0.5f, 0.6f, 0.6f, 0.6f, 0.6f,  //
                    -0.5f, -0.5f, -0.5f, -0.5f, 0.1f, 0.6f, 0.1f, 0.6f},
                   kScores, kOnFirst),
         softplus(1)),
};

std::vector<LayerCase> drawn_codes(std::vector<LayerCase> cases) {
  for (LayerCase& test : cases) {
    if (test.inputs[0].values.empty()) test.inputs[0].shape = {2, 16};
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(MultiBoxLoss, LayerCases, testing::ValuesIn(drawn_codes(kCases)),
                         case_name);

/// A box over the border by a rounding, one without area, and a picture without boxes.
TEST(Reports, B91_BoxesAtTheBorderWithoutAreaAndNone) {
  const std::vector<float> boxes = {0, 1, 0, 0.6f, 0.6f, 1.0000001f, 1.0000001f, 0,  //
                                    0, 1, 1, 0.3f, 0.2f, 0.3f,       0.4f,       0};
  std::vector<float> scores = kScores;
  scores.insert(scores.end(), kScores.begin(), kScores.end());
  for (const char* code : {"CORNER", "CENTER_SIZE"}) {
    LayerCase test = make_case("B91", layer(str("code_type: ", code)), std::vector<float>(32, 0.1f),
                               scores, boxes);
    const LayerRun run = run_layer(test);
    EXPECT_GT(run.blobs.at("l")[0], 0) << code;
    EXPECT_LT(run.blobs.at("l")[0], 100) << code;
    for (const char* blob : {"loc", "conf"}) {
      for (const float v : run.gradients.at(blob)) EXPECT_TRUE(std::isfinite(v)) << code << blob;
    }
  }
}

TEST(MultiBoxLoss, Refusals) {
  const auto bad = [](const std::string& text, const std::string& message) {
    expect_error(make_case("bad", text, kNoCodes, kScores, kOnFirst), message);
  };
  bad(layer("mining_type: HARD_EXAMPLE"), "mining_type: HARD_EXAMPLE is not supported");
  bad(layer("bp_inside: true"), "bp_inside: true is not supported");
  bad(layer("overlap_threshold: 0"), "overlap_threshold: must be above 0");
  LayerCase test =
      make_case("bad", layer(""), kNoCodes, kScores, {0, 2, 0, 0.1f, 0.1f, 0.3f, 0.3f, 0});
  expect_error(test, "class 2 of box 0 (picture 0 of the batch) must be in 0..1");
  test = make_case("bad", layer(""), kNoCodes, kScores, {0, 0, 0, 0.1f, 0.1f, 0.3f, 0.3f, 0});
  expect_error(test, "and not the background, 0");
  test = make_case("bad", layer("share_location: false"), kNoCodes, kScores, kOnFirst);
  expect_error(test, "must hold 4 numbers for each of 4 priors and each class");
}

}  // namespace
}  // namespace crema
