// The crema command itself, and test, time and device_query: usage, output lines, exit status.
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

#include "base/file.h"
#include "base/str.h"
#include "tools/crema_nets.h"

namespace crema {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Command, ShowsUsageOnStandardOutput) {
  const std::vector<std::vector<std::string>> rows = {
      {}, {"--help"}, {"-help", "train"}, {"--cpu"}};
  for (const std::vector<std::string>& arguments : rows) {
    for (const char* program : {"crema", "caffe"}) {
      const Ended ended = run_program(program, arguments);
      EXPECT_EQ(ended.status, 0);
      for (const char* part :
           {"usage: ", "train ", "device_query", "-solver", "-weights", "-sigint_effect"}) {
        EXPECT_TRUE(contains(ended.out, part)) << part << "\n" << ended.out;
      }
      EXPECT_EQ(ended.out.find("usage: "), ended.out.rfind("usage: ")) << "shown twice";
      EXPECT_EQ(ended.err, "");
    }
  }
}

TEST(Command, RefusesAWordThatIsNoFlag) {
  const Ended ended = run_program("crema", {"train", "solver.prototxt"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(contains(ended.err,
                       "crema train takes flags only, not \"solver.prototxt\" (did you mean "
                       "--solver=solver.prototxt?)"))
      << ended.err;
  EXPECT_EQ(ended.out, "");
}

TEST(Command, ShowsItsVersion) {
  const Ended ended = run_program("crema", {"--version"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_TRUE(std::regex_search(ended.out, std::regex("crema version \\d+\\.\\d+"))) << ended.out;
}

TEST(Command, ListsCommandsForAnUnknownOne) {
  const Ended ended = run_program("crema", {"trian"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(contains(ended.err, "there is no command \"trian\" (did you mean train?)"))
      << ended.err;
  EXPECT_TRUE(contains(ended.err, "parse_log, plot, run, summary, test, time, train")) << ended.err;
}

TEST(Command, RefusesUnknownFlags) {
  const Ended ended = run_program("crema", {"train", "--solvr=x"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(contains(ended.err, "solvr")) << ended.err;
}

TEST(Command, NamesTheFlagsThatItIgnores) {
  struct Row {
    std::vector<std::string> arguments;
    std::string ignored;  // "": none
  };
  const std::vector<Row> rows = {
      {{"train", "--iterations=5", "--phase=TEST", "--seed=1", "--cpu"},
       "crema train ignores --iterations (which test, time take), --phase (which time, run, "
       "summary, lint, draw take)"},
      {{"test", "--phase=TRAIN", "--iterations=3"}, "crema test ignores --phase (which "},
      {{"time", "--weights=x", "--trace=t"}, "crema time ignores --weights (which train, test, "},
      {{"run", "--top=3", "--backward", "--outputs=all"},
       "crema run ignores --top (which classify takes)"},
      {{"plot", "--model=x", "--follow"}, "crema plot ignores --model (which "},
      {{"convert", "--output=x"},
       "crema convert ignores --output (which run, deploy, draw, plot, parse_log take)"},
      {{"lint", "--strict", "--weights=x", "--cpu"}, ""},
      {{"test", "--labels=x", "--per_class", "--iterations=all", "--stage=a", "--level=1"}, ""},
      {{"train", "--metrics=m", "--sigint_effect=none", "--minloglevel=0", "--strict", "--v=1"},
       ""},
  };
  const TestFolder folder;
  RunOptions options;
  options.folder = folder.path();
  for (const Row& row : rows) {
    const Ended ended = run_program("crema", row.arguments, options);
    const std::vector<std::string> lines = lines_with(ended.err, " ignores --");
    ASSERT_EQ(lines.size(), row.ignored.empty() ? 0u : 1u) << join(row.arguments) << ended.err;
    if (!row.ignored.empty()) {
      EXPECT_TRUE(contains(lines[0], row.ignored)) << lines[0];
    }
  }
}

TEST(Command, RefusesSizesThatAreNone) {
  for (const char* size : {"0", "-1G", "1e999", "1T", "G", "99999999999999999999", "0x10", "nan"}) {
    const Ended ended =
        run_program("crema", {"time", "--model=none", std::string("--memory_limit=") + size});
    EXPECT_EQ(ended.status, 1) << size;
    EXPECT_TRUE(contains(ended.err, "--memory_limit is a size such as 512M or 2G, not \""))
        << ended.err;
  }
}

TEST(Command, SaysThatItsOutputIsLost) {
  const TestFolder folder;
  folder.write("net.prototxt", constant_net());
  for (const char* command : {"summary", "time --iterations=1"}) {
    const std::string line = str("'", CREMA_BIN_DIR, "/crema' ", command, " --cpu --model='",
                                 folder / "net.prototxt", "' >/dev/full 2>'", folder / "err", "'");
    EXPECT_NE(std::system(line.c_str()), 0) << command;
    EXPECT_TRUE(contains(read_file(folder / "err"),
                         "cannot write standard output: No space left on device"))
        << read_file(folder / "err");
  }
}

TEST(Command, WritesLogFilesWhereAskedTo) {
  const TestFolder folder;
  RunOptions options;
  options.environment = {"GLOG_log_dir=" + folder.path()};
  EXPECT_EQ(run_program("crema", {"train"}, options).status, 1);
  bool found = false;
  for (const std::string& name : folder.files())
    found |= contains(name, "crema.") && contains(name, ".log.ERROR.");
  EXPECT_TRUE(found) << join(folder.files());
}

TEST(TestCommand, ShowsBatchesAndMeans) {
  const TestFolder folder;
  write_training(folder, "max_iter: 3");
  ASSERT_EQ(run_crema(folder, {"train", "--solver=solver.prototxt"}).status, 0);
  const Ended ended = run_crema(
      folder, {"test", "--model=net.prototxt", "--weights=s_iter_3.caffemodel", "--iterations=3"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(lines_with(ended.err, "Running for 3 iterations.").size(), 1u);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(lines_with(ended.err, str("] Batch ", i, ", loss = ")).size(), 1u);
  EXPECT_EQ(lines_with(ended.err, "] Loss: ").size(), 1u);
  const std::vector<std::string> means = lines_with(ended.err, "] loss = ");
  ASSERT_EQ(means.size(), 1u);
  EXPECT_TRUE(
      std::regex_search(means[0], std::regex(R"(\] loss = [-+.\de]+ \(\* 1 = [-+.\de]+ loss\)$)")))
      << means[0];
}

TEST(TestCommand, NeedsModelAndWeights) {
  const TestFolder folder;
  write_training(folder, "max_iter: 3");
  EXPECT_TRUE(contains(run_crema(folder, {"test"}).err, "crema test needs --model"));
  EXPECT_TRUE(contains(run_crema(folder, {"test", "--model=net.prototxt"}).err,
                       "crema test needs --weights"));
  const Ended ended =
      run_crema(folder, {"test", "--model=net.prototxt", "--weights=none.caffemodel"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(contains(ended.err, "none.caffemodel: No such file"));
  EXPECT_EQ(
      run_crema(folder, {"test", "--model=net.prototxt", "--weights=x", "--iterations=0"}).status,
      1);
}

TEST(TimeCommand, ShowsEachLayer) {
  const TestFolder folder;
  write_training(folder, "max_iter: 3");
  const Ended ended = run_crema(folder, {"time", "--model=net.prototxt", "--iterations=2"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  const std::string number = "[-+.\\de]+";
  for (const std::string& line :
       {std::string("Iteration: 2 forward-backward time: N ms\\."),
        std::string("Average time per layer: "), std::string("        ip\tforward: N ms\\."),
        std::string("        ip\tbackward: N ms\\."), std::string("      loss\tbackward: N ms\\."),
        std::string("Average Forward pass: N ms\\."), std::string("Average Backward pass: N ms\\."),
        std::string("Average Forward-Backward: N ms\\."), std::string("Total Time: N ms\\.")}) {
    const std::regex pattern("\\] " + std::regex_replace(line, std::regex("N "), number + " ") +
                             "(\n|$)");
    EXPECT_TRUE(std::regex_search(ended.err, pattern)) << line << "\n" << ended.err;
  }
  EXPECT_TRUE(contains(ended.err, "Memory of parameters: "));
  const Ended phase = run_crema(folder, {"time", "--model=net.prototxt", "--phase=TESt"});
  EXPECT_EQ(phase.status, 1);
  EXPECT_TRUE(contains(phase.err, "--phase is TRAIN or TEST, not \"TESt\"")) << phase.err;
  EXPECT_EQ(
      run_crema(folder, {"time", "--model=net.prototxt", "--phase=TEST", "--iterations=1"}).status,
      0);
}

TEST(TimeCommand, ShowsANetWhoseBlobsHaveSeveralReaders) {
  const TestFolder folder;
  folder.write("fork.prototxt", R"(
    layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
    layer { name: "a" type: "InnerProduct" bottom: "x" top: "a"
            inner_product_param { num_output: 4 } }
    layer { name: "b" type: "InnerProduct" bottom: "a" top: "b"
            inner_product_param { num_output: 4 } }
    layer { name: "sum" type: "Eltwise" bottom: "a" bottom: "b" top: "sum" }
    layer { name: "loss" type: "Reduction" bottom: "sum" top: "loss" loss_weight: 1 })");
  const Ended ended = run_crema(folder, {"time", "--model=fork.prototxt", "--iterations=1"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_TRUE(contains(ended.out, "all steps")) << ended.out;
}

TEST(DeviceQuery, ShowsNothingWithoutGpu) {
  const Ended ended = run_program("crema", {"device_query"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.out + ended.err, "");
}

TEST(DeviceQuery, RefusesWhatIsNoNumber) {
  const Ended ended = run_program("crema", {"device_query", "--gpu=one"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(contains(ended.err, "--gpu takes the number of a GPU")) << ended.err;
}

}  // namespace
}  // namespace crema
