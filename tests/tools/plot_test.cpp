// crema parse_log and plot on the log of a real run; metrics and event files of one.
#include <filesystem>

#include "base/file.h"
#include "tools/convert_testing.h"
#include "tools/crema_nets.h"

namespace crema {
namespace {

/// Trains 6 iterations with two tests; the log becomes run.log.
void train(const TestFolder& folder, std::vector<std::string> flags = {}) {
  write_training(folder, "max_iter: 6 display: 2 test_iter: 1 test_interval: 3");
  flags.insert(flags.begin(), {"train", "--solver=solver.prototxt"});
  const Ended ended = run_crema(folder, flags);
  ASSERT_EQ(ended.status, 0) << ended.err;
  folder.write("run.log", ended.err);
}

TEST(ParseLog, WritesTheTablesOfARun) {
  const TestFolder folder;
  train(folder);
  const Ended ended = run_crema(folder, {"parse_log", "run.log"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  const std::vector<std::string> rows = split(read_file(folder / "run.log.train"), '\n');
  ASSERT_EQ(rows.size(), 6u);  // heading, 0, 2, 4, 6 and an empty end
  EXPECT_EQ(rows[0], "NumIters,Seconds,LearningRate,loss,SmoothedLoss");
  EXPECT_EQ(rows[1].substr(0, 2), "0,");
  EXPECT_HAS(rows[2], ",0.01,");
  EXPECT_EQ(rows[4].substr(0, 2), "6,");
  const std::vector<std::string> tests = split(read_file(folder / "run.log.test"), '\n');
  EXPECT_EQ(tests.size(), 5u);  // heading, 0, 3, 6 and an empty end
  EXPECT_EQ(run_crema(folder, {"parse_log", "run.log", "--format=json"}).status, 0);
  EXPECT_HAS(read_file(folder / "run.log.json"), "\"test\": [[{\"iter\": 0,");
}

TEST(ParseLog, RefusesWhatIsNoLog) {
  const TestFolder folder;
  folder.write("x.log", "nothing");
  EXPECT_HAS(run_crema(folder, {"parse_log", "x.log"}).err, "x.log: shows no iteration");
  EXPECT_HAS(run_crema(folder, {"parse_log", "none"}).err, "none: No such file");
  EXPECT_HAS(run_crema(folder, {"parse_log"}).err, "crema parse_log needs log files");
  EXPECT_EQ(run_crema(folder, {"parse_log", "x.log", "--format=xml"}).status, 1);
  EXPECT_EQ(run_crema(folder, {"parse_log", "x.log", "--output=none"}).status, 1);
}

TEST(Plot, DrawsLossAndRateOfSeveralRuns) {
  const TestFolder folder;
  train(folder);
  std::filesystem::copy(folder / "run.log", folder / "other.log");
  const Ended ended = run_crema(folder, {"plot", "run.log", "other.log", "--output=p.svg"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  const std::string svg = read_file(folder / "p.svg");
  for (const char* part : {">loss<", ">learning rate<", ">run train<", ">other train<",
                           ">other test loss<", ">run rate<"}) {
    EXPECT_HAS(svg, part);
  }
  EXPECT_EQ(svg.find(">accuracy<"), std::string::npos);
}

TEST(Plot, FollowsUntilTheRunEnds) {
  const TestFolder folder;
  train(folder);
  const Ended ended = run_crema(folder, {"plot", "run.log", "--output=p.html", "--follow"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(read_file(folder / "p.html").find("http-equiv"), std::string::npos);
  // a run that goes on: drawn, with the page told to load itself again, until it is interrupted
  const std::string whole = read_file(folder / "run.log");
  folder.write("run.log", whole.substr(0, whole.find("Iteration 4")));
  testing::run_shell(
      str("cd ", folder.path(), "; crema plot run.log --output=live.html --follow & child=$!; ",
          "until [ -e live.html ]; do sleep 0.05; done; kill -INT $child; wait $child"));
  EXPECT_HAS(read_file(folder / "live.html"), "<meta http-equiv=\"refresh\" content=\"2\">");
}

TEST(Plot, PngNeedsAProgram) {
  const TestFolder folder;
  train(folder);
  RunOptions options;
  options.environment = {"PATH=" + folder.path()};
  const Ended ended = run_crema(folder, {"plot", "run.log", "--output=p.png"}, options);
  EXPECT_EQ(ended.status, 1);
  EXPECT_HAS(ended.err, ".png needs the program rsvg-convert");
  folder.write("rsvg-convert", "#!/bin/sh\nprintf png >\"$2\"\n");
  std::filesystem::permissions(folder / "rsvg-convert", std::filesystem::perms::all);
  EXPECT_EQ(run_crema(folder, {"plot", "run.log", "--output=p.png"}, options).status, 0);
  EXPECT_EQ(read_file(folder / "p.png"), "png");
  EXPECT_EQ(run_crema(folder, {"plot", "run.log", "--output=p.gif"}).status, 1);
  EXPECT_EQ(run_crema(folder, {"plot", "--output=p.svg"}).status, 1);
}

TEST(Metrics, HoldEachDisplayAndTest) {
  const TestFolder folder;
  train(folder, {"--metrics=m.jsonl", "--tensorboard=board"});
  const std::vector<std::string> lines = split(read_file(folder / "m.jsonl"), '\n');
  ASSERT_EQ(lines.size(), 8u);  // displays 0, 2, 4, 6, tests 0, 3, 6 and an empty end
  EXPECT_EQ(lines[0].rfind("{\"phase\": \"test\", \"iter\": 0, \"seconds\": ", 0), 0u) << lines[0];
  EXPECT_EQ(lines[1].rfind("{\"phase\": \"train\", \"iter\": 0, \"seconds\": ", 0), 0u) << lines[1];
  EXPECT_HAS(lines[1], ", \"lr\": 0.01, \"outputs\": {\"loss\": ");
  EXPECT_HAS(lines[5], "{\"phase\": \"train\", \"iter\": 6,");
  EXPECT_HAS(lines[6], "{\"phase\": \"test\", \"iter\": 6,");
  size_t events = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "board")) {
    const std::string bytes = read_file(entry.path());
    EXPECT_HAS(bytes, "brain.Event:2");
    EXPECT_HAS(bytes, "train/smoothed_loss");
    EXPECT_HAS(bytes, "test/loss");
    EXPECT_HAS(bytes, "learning_rate");
    ++events;
  }
  EXPECT_EQ(events, 1u);
}

TEST(Metrics, AreRefusedBeforeTraining) {
  const TestFolder folder;
  write_training(folder, "max_iter: 6");
  const Ended ended =
      run_crema(folder, {"train", "--solver=solver.prototxt", "--metrics=none/m.jsonl"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_HAS(ended.err, "none/m.jsonl");
  EXPECT_TRUE(lines_with(ended.err, "Starting Optimization").empty());
}

}  // namespace
}  // namespace crema
