// Logs as tables: Crema's and Caffe's lines, NVCaffe's, and what must not be taken for a figure.
#include "io/training_log.h"

#include <gtest/gtest.h>

#include <cmath>

#include "io/scratch.h"

namespace crema {
namespace {

constexpr const char* kLog =
    "I1231 23:59:50.500000  7 solver.cpp:1] Creating training net from net file: Iteration 9\n"
    "I1231 23:59:58.000000  7 solver.cpp:55] Solving LeNet\n"
    "I1231 23:59:58.500000  7 solver.cpp:330] Iteration 0, Testing net (#0)\n"
    "I1231 23:59:59.000000  7 solver.cpp:397] Test loss: 2.5\n"
    "I1231 23:59:59.000000  7 solver.cpp:397]     Test net output #0: accuracy = 0.125\n"
    "I1231 23:59:59.000000  7 solver.cpp:397]     Test net output #1: loss = 2.4 (* 1 = 2.4 loss)\n"
    "I1231 23:59:59.250000  7 solver.cpp:218] Iteration 0 (0 iter/s, 0.2s/100 iters), loss = 2.3\n"
    "I1231 23:59:59.250000  7 solver.cpp:237]     Train net output #0: loss = nan (* 1 = nan "
    "loss)\n"
    "I1231 23:59:59.250000  7 sgd_solver.cpp:105] Iteration 0, lr = 1e-05\n"
    "Iteration 5, lr = 7\n"
    "I0101 00:00:08.000000  7 solver.cpp:218] [0.0] Iteration 100 (9 iter/s, 1s/100 iters), loss = "
    "0.5\n"
    "I0101 00:00:08.000000  7 solver.cpp:237] [0.0]     Train net output #0: v = 1\n"
    "I0101 00:00:08.000000  7 solver.cpp:237] [0.0]     Train net output #1: v = 2\n"
    "I0101 00:00:09.000000  7 solver.cpp:330] Iteration 100, Testing net (#1)\n"
    "I0101 00:00:09.500000  7 solver.cpp:397]     Test net output #0: top5 = inf\n";

TEST(TrainingLog, ReadsRowsOfBothPhases) {
  const TrainingLog log = parse_training_log(kLog);
  EXPECT_FALSE(log.is_finished);
  ASSERT_EQ(log.train.size(), 2u);
  EXPECT_EQ(log.train[0].iteration, 0);
  EXPECT_DOUBLE_EQ(log.train[0].seconds, 1.25);
  EXPECT_DOUBLE_EQ(log.train[0].values.at("loss"), 2.3);
  EXPECT_DOUBLE_EQ(log.train[0].values.at("lr"), 1e-5);
  EXPECT_TRUE(std::isnan(log.train[0].values.at("output loss")));
  EXPECT_EQ(log.train[1].iteration, 100);
  EXPECT_DOUBLE_EQ(log.train[1].seconds, 10);  // over the turn of the year
  EXPECT_EQ(log.train[1].values.at("output v"), 1);
  EXPECT_EQ(log.train[1].values.at("output v[1]"), 2);
  ASSERT_EQ(log.tests.size(), 2u);
  ASSERT_EQ(log.tests[0].size(), 1u);
  EXPECT_EQ(log.tests[0][0].values.at("output accuracy"), 0.125);
  EXPECT_EQ(log.tests[0][0].values.at("output loss"), 2.4);
  EXPECT_EQ(log.tests[0][0].values.at("loss"), 2.5);
  EXPECT_EQ(log.tests[0][0].values.count("lr"), 0u);
  EXPECT_EQ(log.tests[1][0].values.at("lr"), 1e-5);
  EXPECT_TRUE(std::isinf(log.tests[1][0].values.at("output top5")));
  EXPECT_TRUE(parse_training_log(str(kLog, "I0101 00:00:09.5  7 a.cpp:1] Optimization Done.\n"))
                  .is_finished);
}

TEST(TrainingLog, AsCsv) {
  const TrainingLog log = parse_training_log(kLog);
  EXPECT_EQ(to_csv(log.train, "SmoothedLoss"),
            "NumIters,Seconds,LearningRate,loss,v,v[1],SmoothedLoss\n"
            "0,1.25,1e-05,nan,,,2.3\n100,10,,,1,2,0.5\n");
  EXPECT_EQ(to_csv(log.tests[1], "TestLoss"),
            "NumIters,Seconds,LearningRate,top5\n100,11,1e-05,inf\n");
}

TEST(TrainingLog, AsJson) {
  const TrainingLog log = parse_training_log(kLog);
  EXPECT_EQ(
      to_json(log),
      "{\"train\": [{\"iter\": 0, \"seconds\": 1.25, \"loss\": 2.3, \"lr\": 1e-05, \"outputs\": "
      "{\"loss\": null}},\n  {\"iter\": 100, \"seconds\": 10, \"loss\": 0.5, \"outputs\": "
      "{\"v\": 1, \"v[1]\": 2}}],\n \"test\": [[{\"iter\": 0, \"seconds\": 0.5, \"loss\": 2.5, "
      "\"outputs\": {\"accuracy\": 0.125, \"loss\": 2.4}}],\n [{\"iter\": 100, \"seconds\": 11, "
      "\"lr\": 1e-05, \"outputs\": {\"top5\": null}}]]}\n");
}

TEST(TrainingLog, WithoutIterationsIsRefused) {
  const TestFolder folder;
  write_file(folder / "x.log", "nothing\nI1231 23:59:50.5  7 a.cpp:1] Iteration\n");
  EXPECT_EQ(error_of([&] { read_training_log(folder / "x.log"); }),
            (folder / "x.log") +
                ": shows no iteration; a log of crema train (its standard error) is needed");
}

}  // namespace
}  // namespace crema
