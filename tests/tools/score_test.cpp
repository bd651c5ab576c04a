// crema test over a whole set and class by class; figures counted by hand.
#include "base/file.h"
#include "tools/convert_testing.h"
#include "tools/crema_nets.h"
#include "tools/weights_testing.h"

namespace crema {
namespace {

/// Class 1 where a record's pixel is above 4.5.
constexpr const char* kThreshold = R"(
  layer { name: 'data' type: 'Data' top: 'data' top: 'label'
          data_param { source: 'db' batch_size: 4 backend: LMDB } }
  layer { name: 'limit' type: 'Power' bottom: 'data' top: 'limit'
          power_param { scale: 0 shift: 4.5 } }
  layer { name: 'scores' type: 'Concat' bottom: 'limit' bottom: 'data' top: 'scores' }
  layer { name: 'accuracy' type: 'Accuracy' bottom: 'scores' bottom: 'label' top: 'accuracy' }
)";

/// Ten records with pixels 0 to 9, labelled right but for the last one.
void write_threshold(const TestFolder& folder) {
  std::vector<testing::TestRecord> records;
  for (int i = 0; i < 10; ++i) {
    records.push_back({record_key(i), testing::ramp_datum(1, 1, 1, i >= 5 && i < 9, i)});
  }
  testing::write_database(folder / "db", records);
  folder.write("net.prototxt", kThreshold);
  testing::write_weights(folder / "w.caffemodel", {});
}

Ended run_test(const TestFolder& folder, std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"test", "--model=net.prototxt", "--weights=w.caffemodel"});
  return run_crema(folder, flags);
}

TEST(WholeSet, EachRecordCountsOnce) {
  const TestFolder folder;
  write_threshold(folder);
  const Ended ended = run_test(folder, {"--iterations=all"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_HAS(ended.err, "Running for 3 iterations.");
  EXPECT_HAS(ended.err, "The whole set once: 10 records, 2 batches of 4 and one of 2");
  EXPECT_HAS(ended.err, "Batch 1, accuracy = 1\n");
  EXPECT_HAS(ended.err, "Batch 2, accuracy = 0.5\n");
  EXPECT_HAS(ended.err, "] accuracy = 0.9\n");
}

TEST(CremaTest, ShowsDebugInfoOfTheNet) {
  const TestFolder folder;
  write_threshold(folder);
  folder.write("net.prototxt", std::string("debug_info: true ") + kThreshold);
  const Ended ended = run_test(folder, {"--iterations=2"});
  EXPECT_EQ(lines_with(ended.err, "[Forward] Layer limit, top blob limit data: 4.5").size(), 2U);
}

TEST(WholeSet, ABatchMayBeLargerThanTheSet) {
  const TestFolder folder;
  write_threshold(folder);
  folder.write("net.prototxt",
               std::string(kThreshold)
                   .replace(std::string(kThreshold).find("batch_size: 4"), 13, "batch_size: 64"));
  const Ended ended = run_test(folder, {"--iterations=all"});
  EXPECT_HAS(ended.err, "Running for 1 iterations.");
  EXPECT_HAS(ended.err, "] accuracy = 0.9\n");
}

TEST(WholeSet, NeedsARecordCountThatIsOne) {
  const TestFolder folder;
  write_threshold(folder);
  Ended ended = run_test(folder, {"--iterations=al"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_HAS(ended.err, "--iterations must be a number above 0, not al");
  folder.write("net.prototxt", constant_net());
  ended = run_test(folder, {"--iterations=all"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_HAS(ended.err, "net.prototxt: --iterations=all needs a layer that reads records");
  testing::write_numbers(folder / "other", 9);
  folder.write("net.prototxt",
               str(kThreshold,
                   "layer { name: 'more' type: 'Data' top: 'more' top: 'l2' data_param "
                   "{ source: 'other' batch_size: 4 backend: LMDB } }"));
  ended = run_test(folder, {"--iterations=all"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_HAS(ended.err, "layer \"more\" has 9 records in batches of 4, layer \"data\" 10");
}

TEST(Classes, AreCountedOneByOne) {
  const TestFolder folder;
  write_threshold(folder);
  folder.write("names", "small\nlarge, or so\n");
  const Ended ended = run_test(
      folder, {"--iterations=all", "--per_class", "--labels=names", "--confusion_matrix=m.csv"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_HAS(ended.err,
             "Class 0 (small): accuracy = 0.833333, precision = 1, F1 = 0.909091, IoU = 0.833333, "
             "6 samples");
  EXPECT_HAS(
      ended.err,
      "Class 1 (large, or so): accuracy = 1, precision = 0.8, F1 = 0.888889, IoU = 0.8, 4 samples");
  EXPECT_HAS(
      ended.err,
      "Mean of 2 classes: accuracy = 0.916667, precision = 0.9, F1 = 0.89899, IoU = 0.816667");
  EXPECT_EQ(read_file(folder / "m.csv"),
            "true\\chosen,small,\"large, or so\"\nsmall,5,1\n\"large, or so\",0,4\n");
}

TEST(Classes, NamesThatCannotBeReadAreFoundBeforeTheWork) {
  const TestFolder folder;
  write_threshold(folder);
  folder.write("binary", std::string("a\0b", 3));
  for (const auto& [file, text] : std::vector<std::pair<std::string, std::string>>{
           {"none", "none: No such file"}, {"binary", "binary: is binary data, a name in each"}}) {
    const Ended ended = run_test(folder, {"--iterations=all", "--per_class", "--labels=" + file});
    EXPECT_EQ(ended.status, 1);
    EXPECT_HAS(ended.err, text);
    EXPECT_EQ(ended.err.find("Batch 0"), std::string::npos) << ended.err;
  }
}

TEST(Classes, TiesAreTakenForTheOtherClassAsAccuracyDoes) {
  const TestFolder folder;
  write_threshold(folder);
  folder.write("net.prototxt",
               std::string(kThreshold)
                   .replace(std::string(kThreshold).find("shift: 4.5"), 10, "shift: 4  "));
  const Ended ended = run_test(folder, {"--iterations=all", "--confusion_matrix=m.csv"});
  EXPECT_HAS(ended.err, "] accuracy = 0.8\n");  // pixel 4 and pixel 9
  EXPECT_EQ(read_file(folder / "m.csv"), "true\\chosen,0,1\n0,4,2\n1,0,4\n");
}

TEST(Classes, NeedScoresAndLabels) {
  const TestFolder folder;
  write_threshold(folder);
  folder.write("net.prototxt", constant_net());
  const Ended ended = run_test(folder, {"--per_class"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_HAS(ended.err, "net.prototxt: has no Accuracy, SoftmaxWithLoss or InfogainLoss layer");
}

/// One detection, right, of class 1; of class 2 a box is missed. Rows of DetectionEvaluate follow
/// in size what is found.
std::string detector() {
  std::string text;
  const auto constants = [&](const std::string& name, const std::vector<float>& values) {
    std::string bottoms;
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string part = str(name, i);
      text +=
          str("layer { name: '", part, "' type: 'DummyData' top: '", part,
              "' dummy_data_param { shape { dim: 1 dim: 1 dim: 1 dim: 1 } data_filler { value: ",
              values[i], " } } }\n");
      bottoms += str("bottom: '", part, "' ");
    }
    text += str("layer { name: '", name, "' type: 'Concat' top: '", name, "' ", bottoms,
                "concat_param { axis: 3 } }\n");
  };
  constants("found", {0, 1, 0.9f, 0, 0, 1, 1});
  constants("first", {0, 1, 0, 0, 0, 1, 1, 0});
  constants("second", {0, 2, 0, 0, 0, 1, 1, 0});
  return text +
         "layer { name: 'truth' type: 'Concat' bottom: 'first' bottom: 'second' top: 'truth' "
         "concat_param { axis: 2 } }\nlayer { name: 'eval' type: 'DetectionEvaluate' bottom: "
         "'found' bottom: 'truth' top: 'detection_eval' detection_evaluate_param { num_classes: 3 "
         "} "
         "}\n";
}

TEST(Detectors, AreScoredByMeanAveragePrecision) {
  const TestFolder folder;
  write_threshold(folder);
  folder.write("net.prototxt", detector());
  folder.write("names", "none\ncat\n");
  const Ended ended = run_test(folder, {"--iterations=2", "--per_class", "--labels=names"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_HAS(ended.err, "Class 1 (cat): average precision = 1\n");
  EXPECT_HAS(ended.err, "Class 2: average precision = 0\n");
  EXPECT_HAS(ended.err, "detection_eval = 0.5 (mean average precision, Integral)\n");
  EXPECT_EQ(ended.err.find("Batch 0, detection_eval"), std::string::npos);
}

TEST(Detectors, TheKindOfPrecisionIsOneOfThree) {
  const TestFolder folder;
  write_threshold(folder);
  folder.write("net.prototxt", detector());
  const Ended ended = run_test(folder, {"--ap_version=12point"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_HAS(ended.err, "12point");
  EXPECT_HAS(ended.err, "must be Integral, MaxIntegral or 11point");
}

}  // namespace
}  // namespace crema
