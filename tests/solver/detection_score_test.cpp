// Average precision against values worked out by hand.
#include "solver/detection_score.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "io/hdf5.h"
#include "solver/solver_harness.h"

namespace crema {
namespace {

// Right, wrong, right: precision 1, 1/2, 2/3 at recall 1/4, 1/4, 1/2.
TEST(AveragePrecision, ThreeKinds) {
  const std::vector<bool> found = {true, false, true};
  EXPECT_NEAR(average_precision(found, 4, ApKind::integral), 1 / 4.0 + 2 / 3.0 / 4, 1e-12);
  EXPECT_NEAR(average_precision(found, 4, ApKind::max_integral), 1 / 4.0 + 2 / 3.0 / 4, 1e-12);
  // Recall 0, 0.1, 0.2: precision 1; 0.3, 0.4, 0.5: 2/3.
  EXPECT_NEAR(average_precision(found, 4, ApKind::eleven_point), (3 + 3 * 2 / 3.0) / 11, 1e-12);
}

TEST(AveragePrecision, MaxIntegralLooksAhead) {
  const std::vector<bool> found = {false, true, true};
  EXPECT_NEAR(average_precision(found, 2, ApKind::integral), 0.5 * 0.5 + 0.5 * 2 / 3, 1e-12);
  EXPECT_NEAR(average_precision(found, 2, ApKind::max_integral), 2 / 3.0, 1e-12);
}

TEST(AveragePrecision, NothingFoundOrNothingThere) {
  EXPECT_EQ(average_precision({}, 3, ApKind::eleven_point), 0);
  EXPECT_EQ(average_precision({true}, 0, ApKind::integral), 0);
}

TEST(DetectionScore, AddsBatchesUp) {
  DetectionScore score;
  const std::vector<float> first = {-1, 1, 1,    -1, -1, -1, 2, 0,    -1, -1,  //
                                    0,  1, 0.5f, 1,  0,  0,  1, 0.4f, 0,  0};
  const std::vector<float> second = {-1, 1, 1, -1, -1, -1, 2, 1, -1, -1, 0, 1, 0.9f, 0, 1};
  score.add(first);
  score.add(second);
  const std::map<int, double> per_class = score.per_class(ApKind::integral);
  ASSERT_EQ(per_class.size(), 2U);
  // Class 1: wrong at 0.9, right at 0.5 of two; class 2: one box, nothing found.
  EXPECT_NEAR(per_class.at(1), 0.5 * 0.5, 1e-12);
  EXPECT_EQ(per_class.at(2), 0);
  EXPECT_NEAR(score.mean(ApKind::integral), 0.125, 1e-12);
}

TEST(DetectionScore, Refusals) {
  EXPECT_THROW(DetectionScore().add(std::vector<float>{1, 2, 3}), Error);
  EXPECT_THROW(ap_kind("12point"), Error);
  EXPECT_EQ(ap_kind("MaxIntegral"), ApKind::max_integral);
}

/// A [1, 1, 1, n] blob of these constants.
std::string constants(const std::string& name, const std::vector<float>& values) {
  std::string text, bottoms;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string part = str(name, "_", i);
    text += str("layer { name: '", part, "' type: 'DummyData' top: '", part,
                "' dummy_data_param { shape { dim: 1 dim: 1 dim: 1 dim: 1 } data_filler { value: ",
                values[i], " } } } ");
    bottoms += str("bottom: '", part, "' ");
  }
  return str(text, "layer { name: '", name, "' type: 'Concat' top: '", name, "' ", bottoms,
             "concat_param { axis: 3 } } ");
}

/// A test net whose only detection, of class 1, is right; of class 2 a box is missed.
std::string detector(const std::string& fields) {
  std::string text = "base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 test_iter: 2 test_interval: 1 ";
  text += fields;
  text +=
      "train_net_param { layer { name: 'd' type: 'DummyData' top: 'd' dummy_data_param { shape { "
      "dim: 1 } } } layer { name: 's' type: 'Silence' bottom: 'd' } } test_net_param { ";
  text += constants("found", {0, 1, 0.9f, 0, 0, 1, 1});
  text += constants("first", {0, 1, 0, 0, 0, 1, 1, 0});
  text += constants("second", {0, 2, 0, 0, 0, 1, 1, 0});
  text +=
      "layer { name: 'truth' type: 'Concat' bottom: 'first' bottom: 'second' top: 'truth' "
      "concat_param { axis: 2 } } layer { name: 'eval' type: 'DetectionEvaluate' bottom: 'found' "
      "bottom: 'truth' top: 'detection_eval' detection_evaluate_param { num_classes: 3 } } }";
  return text;
}

TEST(DetectionTest, ScoreIsTheMeanAveragePrecision) {
  const auto solver = make_solver(
      detector("eval_type: 'detection' ap_version: '11point' show_per_class_result: true "));
  const LogLines log;
  solver->test_all();
  const std::vector<std::vector<double>> scores = solver->test_scores(0);
  ASSERT_EQ(scores.size(), 1U);
  ASSERT_EQ(scores[0].size(), 1U);
  EXPECT_NEAR(scores[0][0], 0.5, 1e-6);
  EXPECT_EQ(log.with("    Test net output #0: detection_eval = 0.5").size(), 1U);
  EXPECT_EQ(log.with("class1: 1").size(), 1U);
  EXPECT_EQ(log.with("class2: 0").size(), 1U);
}

/// A right detection, a right one, a wrong one with a higher score; two of them in each test.
TEST(DetectionTest, EachTestBeginsAnew) {
  const WorkFolder folder;
  Hdf5File file = Hdf5File::create("found.h5");
  const std::vector<float> found = {0, 1, 0.9f,  0, 0, 1,    1,  //
                                    0, 1, 0.9f,  0, 0, 1,    1,  //
                                    0, 1, 0.95f, 0, 0, 0.1f, 0.1f};
  file.write("found", Shape{3, 1, 1, 7}, found.data());
  file.close();
  write_file("found.txt", "found.h5\n");
  std::string text =
      "base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 test_iter: 2 test_interval: 1 eval_type: "
      "'detection' ap_version: '11point' train_net_param { layer { name: 'd' type: 'DummyData' "
      "top: 'd' dummy_data_param { shape { dim: 1 } } } layer { name: 's' type: 'Silence' bottom: "
      "'d' } } test_net_param { layer { name: 'found' type: 'HDF5Data' top: 'found' "
      "hdf5_data_param { source: 'found.txt' batch_size: 1 } } ";
  text += constants("truth", {0, 1, 0, 0, 0, 1, 1, 0});
  text +=
      "layer { name: 'eval' type: 'DetectionEvaluate' bottom: 'found' bottom: 'truth' top: 'map' "
      "detection_evaluate_param { num_classes: 2 } } }";
  const auto solver = make_solver(text);
  solver->test_all();
  EXPECT_NEAR(solver->test_scores(0)[0][0], 1, 1e-12);
  solver->test_all();  // recall 1/2 with precision 1/2: the points 0 to 0.5
  EXPECT_NEAR(solver->test_scores(0)[0][0], 0.5 * 6 / 11, 1e-12);
}

TEST(DetectionTest, Refusals) {
  EXPECT_NE(solver_error(detector("eval_type: 'segmentation' "))
                .find("eval_type: \"segmentation\" must be classification or detection"),
            std::string::npos);
  EXPECT_NE(solver_error(detector("ap_version: '12point' "))
                .find("ap_version: \"12point\" must be Integral, MaxIntegral or 11point"),
            std::string::npos);
}

}  // namespace
}  // namespace crema
