// CTCLoss against the sum over all paths, CTCGreedyDecoder.
#include <cmath>

#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string loss(const std::string& fields = "") {
  return "layer { name: \"loss\" type: \"CTCLoss\" bottom: \"x\" bottom: \"cont\" bottom: "
         "\"label\" top: \"l\" ctc_loss_param { " +
         fields + " } }";
}
LayerInput fixed(const std::string& name, const Shape& shape, const std::vector<float>& values) {
  return {.name = name, .shape = shape, .values = values, .gradient = false};
}

/// What a path of classes says: equal neighbours once, then no blanks.
std::vector<int> said(const std::vector<int>& path, int blank) {
  std::vector<int> labels;
  int before = -1;
  for (const int c : path) {
    if (c != before && c != blank) labels.push_back(c);
    before = c;
  }
  return labels;
}

/// -log of the probability of the labels, summed over every path; scores [T, C].
double loss_over_paths(const std::vector<float>& scores, int steps, int classes, int blank,
                       const std::vector<int>& labels) {
  double total = 0;
  std::vector<int> path(static_cast<size_t>(steps), 0);
  for (;;) {
    if (said(path, blank) == labels) {
      double p = 1;
      for (int t = 0; t < steps; ++t) {
        double sum = 0;
        for (int c = 0; c < classes; ++c) {
          sum += std::exp(static_cast<double>(scores[static_cast<size_t>(t * classes + c)]));
        }
        p *= std::exp(static_cast<double>(
                 scores[static_cast<size_t>(t * classes + path[static_cast<size_t>(t)])])) /
             sum;
      }
      total += p;
    }
    int t = steps - 1;
    while (t >= 0 && ++path[static_cast<size_t>(t)] == classes) path[static_cast<size_t>(t--)] = 0;
    if (t < 0) return -std::log(total);
  }
}

const std::vector<float> kFive = {0.3f, -1, 0.5f,  1,    0.25f, -0.5f, -0.75f, 2,
                                  0.1f, 0,  -0.2f, 0.4f, 0.9f,  -0.3f, 0.6f};

struct PathCase {
  const char* name;
  std::vector<int> labels;
  int blank;
};
void PrintTo(const PathCase& test, std::ostream* out) { *out << test.name; }

class CtcPaths : public testing::TestWithParam<PathCase> {};

TEST_P(CtcPaths, LossIsTheSumOverPaths) {
  const PathCase& test = GetParam();
  std::vector<float> labels(test.labels.begin(), test.labels.end());
  labels.push_back(-1);
  const auto count = static_cast<int64_t>(labels.size());
  const LayerRun run = run_layer({.layer = loss("blank_index: " + std::to_string(test.blank)),
                                  .inputs = {{"x", {5, 1, 3}, kFive},
                                             fixed("cont", {5, 1}, {0, 1, 1, 1, 1}),
                                             fixed("label", {count, 1}, labels)}});
  EXPECT_NEAR(run.blobs.at("l")[0], loss_over_paths(kFive, 5, 3, test.blank, test.labels), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Ctc, CtcPaths,
                         testing::Values(PathCase{"one", {0}, 2}, PathCase{"two", {0, 1}, 2},
                                         PathCase{"equal_neighbours", {1, 1}, 2},
                                         PathCase{"none", {}, 2},
                                         PathCase{"three_tight", {1, 1, 1}, 2},
                                         PathCase{"first_is_blank", {2, 1, 2}, 0}),
                         [](const auto& info) { return std::string(info.param.name); });

const std::vector<LayerCase> kLoss = {
    {.name = "one_third",
     .layer = loss(),
     .inputs = {{"x", {2, 1, 3}, {0, 0, 0, 0, 0, 0}},
                fixed("cont", {2, 1}, {0, 1}),
                fixed("label", {1, 1}, {0})},
     .expect = {{"l", {std::log(3.0f)}}},
     .expect_gradients = {{"x", {-1 / 3.0f, 1 / 3.0f, 0, -1 / 3.0f, 1 / 3.0f, 0}}}},
    {.name = "lengths_differ",
     .layer = loss(),
     .inputs = {{"x", {6, 3, 4}},
                fixed("cont", {6, 3}, {0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 1, 0, 0}),
                fixed("label", {3, 3}, {0, 1, 2, 0, 2, -1, 1, -1, -1})}},
    {.name = "equal_labels_collapse",
     .layer = loss("preprocess_collapse_repeated: true blank_index: 0"),
     .inputs = {{"x", {3, 1, 3}},
                fixed("cont", {3, 1}, {0, 1, 1}),
                fixed("label", {4, 1}, {1, 1, 1, 2})}},
};
INSTANTIATE_TEST_SUITE_P(CTCLoss, LayerCases, testing::ValuesIn(kLoss), case_name);

TEST(CTCLoss, Refusals) {
  LayerCase test{
      .layer = loss(),
      .inputs = {{"x", {2, 1, 3}}, fixed("cont", {2, 1}, {0, 1}), fixed("label", {2, 1}, {1, 1})}};
  expect_error(test, "the labels of sequence 0 need 3 steps");
  test.inputs[2].values = {1, 2};
  expect_error(test, "label 2 of sequence 0 must be in 0..2 and not the blank, 2");
  test.inputs[2] = fixed("label", {3}, {1, 0, -1});
  expect_error(test, "bottom \"label\" of shape 3 must be labels [L, 1]");
  test.inputs[2] = fixed("label", {1, 1}, {1});
  test.layer = loss("blank_index: 3");
  expect_error(test, "blank_index: 3 must be in 0..2, or -1 for the last class");
}

std::string decoder(const std::string& fields, const std::string& more = "") {
  return "layer { name: \"l\" type: \"CTCGreedyDecoder\" bottom: \"x\" bottom: \"cont\" top: "
         "\"y\" " +
         more + " ctc_decoder_param { " + fields + " } }";
}
// Best classes of sequence 0: 1 1 2 1; of sequence 1: 0 0 (then it ends). The blank is 2.
const LayerInput kBest = fixed("x", {4, 2, 3}, {0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0,  //
                                                0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0});
const LayerInput kCont = fixed("cont", {4, 2}, {0, 0, 1, 1, 1, 0, 1, 1});

const std::vector<LayerCase> kDecoder = {
    {.name = "merged",
     .layer = decoder(""),
     .inputs = {kBest, kCont},
     .expect = {{"y", {1, 1, -1, -1, 0, -1, -1, -1}}},
     .shapes = {{"y", {2, 4}}},
     .backward = false},
    {.name = "not_merged",
     .layer = decoder("ctc_merge_repeated: false"),
     .inputs = {kBest, kCont},
     .expect = {{"y", {1, 1, 1, -1, 0, 0, -1, -1}}},
     .backward = false},
    {.name = "another_blank",
     .layer = decoder("blank_index: 1"),
     .inputs = {kBest, kCont},
     .expect = {{"y", {2, -1, -1, -1, 0, -1, -1, -1}}},
     .backward = false},
    // 1 1 against 1 0 1: one insertion of three; 0 against nothing: 0.
    {.name = "accuracy",
     .layer = decoder("", "bottom: \"label\" top: \"accuracy\""),
     .inputs = {kBest, kCont, fixed("label", {3, 2}, {1, -1, 0, -1, 1, -1})},
     .expect = {{"accuracy", {1 / 3.0f}}},
     .backward = false},
};
INSTANTIATE_TEST_SUITE_P(CTCGreedyDecoder, LayerCases, testing::ValuesIn(kDecoder), case_name);

TEST(CTCGreedyDecoder, Refusals) {
  expect_error({.layer = decoder("", "top: \"a\""), .inputs = {kBest, kCont}, .backward = false},
               "a second top, the accuracy, needs a third bottom");
  expect_error({.layer = decoder("blank_index: 7"), .inputs = {kBest, kCont}, .backward = false},
               "blank_index: 7 must be in 0..2");
}

}  // namespace
}  // namespace crema
