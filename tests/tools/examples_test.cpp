// The three trainings on drawn pictures (models/ssd_boxes, lstm_ctc_digits, fcn_shapes) in a short
// form: generator, converters, nets and solvers as they are there, with fewer pictures and
// iterations. Each must learn: the scores asked for are out of reach when a layer's backward is
// wrong.
#include <regex>

#include "base/file.h"
#include "convert_testing.h"
#include "tools/crema_nets.h"

namespace crema {
namespace {

class Examples : public ::testing::Test {
 protected:
  /// Runs a shell line in the folder that stands for the repository's root; it must succeed.
  std::string run(const std::string& command) const {
    const testing::ToolResult result =
        testing::run_shell(str("cd ", folder_.path(), " && ", command));
    EXPECT_EQ(result.status, 0) << command << "\n" << result.output;
    return result.output;
  }

  /// Draws the pictures of models/NAME into build/NAME and runs a converter's line there.
  void prepare(const std::string& name, int train, int test, const std::string& convert,
               const std::string& more = "") {
    name_ = name;
    run(str("ln -s ", CREMA_SOURCE_DIR, "/models models"));
    run(str("python3 models/", name, "/draw.py build/", name, ' ', train, ' ', test, ' ', more));
    run(str("cd build/", name, " && ", convert));
  }

  /// Trains with these values in place of the solver's own; gives the log.
  std::string train(const std::vector<std::pair<std::string, std::string>>& fields) const {
    std::string solver = read_file(str(CREMA_SOURCE_DIR, "/models/", name_, "/solver.prototxt"));
    for (const auto& [field, value] : fields) {
      const std::regex line(str("\n", field, ":[^\n]*"));
      EXPECT_TRUE(std::regex_search(solver, line)) << field;
      solver = std::regex_replace(solver, line, str("\n", field, ": ", value),
                                  std::regex_constants::format_first_only);
    }
    folder_.write("solver.prototxt", solver);
    return run("OMP_NUM_THREADS=1 crema train --cpu --solver=solver.prototxt");
  }

  /// The number behind the last `text` of a log; -1 where there is none.
  static double last_number(const std::string& log, const std::string& text) {
    const size_t at = log.rfind(text);
    return at == std::string::npos ? -1 : std::stod(log.substr(at + text.size()));
  }

  TestFolder folder_;
  std::string name_;
};

TEST_F(Examples, ADetectorFindsColouredBoxes) {
  prepare(
      "ssd_boxes", 400, 50,
      "create_label_map classes.txt labelmap.prototxt && for set in train test; do "
      "convert_annoset --label_map_file=labelmap.prototxt ./ $set.txt ${set}_lmdb || exit; done");
  const std::string log = train({{"test_iter", "2"},
                                 {"test_interval", "200"},
                                 {"stepvalue", "150"},
                                 {"max_iter", "200"},
                                 {"snapshot", "200"}});
  EXPECT_GT(last_number(log, "detection_eval = "), 0.75);
  const std::string test = run(
      "crema test --cpu --model=models/ssd_boxes/train_val.prototxt --iterations=all --per_class "
      "--weights=build/ssd_boxes/ssd_boxes_iter_200.caffemodel");
  EXPECT_HAS(test, "The whole set once: 50 records, 2 batches of 20 and one of 10");
  EXPECT_HAS(test, "Class 3: average precision = ");
  EXPECT_GT(last_number(test, "detection_eval = "), 0.75);
}

TEST_F(Examples, AReaderReadsDigitStrings) {
  // Strings of six digits: the dense ones are aligned soonest.
  prepare("lstm_ctc_digits", 800, 80,
          "for set in train test; do convert_imageset --gray --label_count=6 ./ $set.txt "
          "${set}_lmdb || exit; done",
          "1 6");
  const std::string log = train({{"test_iter", "2"},
                                 {"test_interval", "350"},
                                 {"stepvalue", "320"},
                                 {"max_iter", "350"},
                                 {"snapshot", "350"}});
  EXPECT_GT(last_number(log, "accuracy = "), 0.5);
}

TEST_F(Examples, AFullyConvolutionalNetSegmentsShapes) {
  prepare("fcn_shapes", 300, 40,
          "for set in train test; do convert_imageset ./ ${set}_pictures.txt ${set}_pictures_lmdb "
          "&& convert_imageset --gray ./ ${set}_classes.txt ${set}_classes_lmdb || exit; done");
  train({{"test_iter", "2"},
         {"test_interval", "200"},
         {"stepvalue", "150"},
         {"max_iter", "200"},
         {"snapshot", "200"}});
  const std::string test = run(
      "crema test --cpu --model=models/fcn_shapes/train_val.prototxt --iterations=all --per_class "
      "--weights=build/fcn_shapes/fcn_shapes_iter_200.caffemodel");
  const size_t mean = test.find("Mean of 4 classes: ");
  ASSERT_NE(mean, std::string::npos) << test;
  // Background everywhere has 0.22.
  EXPECT_GT(last_number(test.substr(mean), "IoU = "), 0.35);
}

}  // namespace
}  // namespace crema
