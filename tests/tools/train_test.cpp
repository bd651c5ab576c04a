// crema train from outside: what it writes, how it ends, and every mistake answered by one line and
// exit status 1.
#include <gtest/gtest.h>

#include <csignal>
#include <regex>

#include "base/file.h"
#include "base/str.h"
#include "io/solver_state.h"
#include "tools/crema_nets.h"

namespace crema {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Exit status 1, one line on stderr with the text in it, as an error of the log; no trace of a
/// crash.
void expect_error(const Ended& ended, const std::string& text) {
  EXPECT_EQ(ended.status, 1) << ended.err;
  const std::vector<std::string> errors = lines_with(ended.err, "main.cpp:");
  ASSERT_EQ(errors.size(), 1u) << ended.err;
  EXPECT_EQ(errors[0][0], 'E') << errors[0];
  EXPECT_TRUE(contains(errors[0], text)) << errors[0];
  EXPECT_FALSE(contains(ended.err, "***")) << ended.err;
}

TEST(Train, TrainsAndSnapshots) {
  const TestFolder folder;
  write_training(folder, "max_iter: 10 display: 5 snapshot: 4");
  const Ended ended = run_crema(folder, {"train", "--solver=solver.prototxt"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.out, "");
  for (const char* name :
       {"s_iter_4.caffemodel", "s_iter_4.solverstate", "s_iter_8.caffemodel",
        "s_iter_8.solverstate", "s_iter_10.caffemodel", "s_iter_10.solverstate"}) {
    EXPECT_TRUE(folder.has(name)) << name;
  }
  EXPECT_EQ(folder.files().size(), 8u);
  for (const char* line :
       {"Use CPU.", "Initializing solver from parameters:", "Creating training net from net file: ",
        "Solver scaffolding done.", "Starting Optimization", "Solving constant",
        "Learning Rate Policy: fixed", "Iteration 10, loss = "}) {
    EXPECT_EQ(lines_with(ended.err, line).size(), 1u) << line;
  }
  EXPECT_EQ(lines_with(ended.err, "Optimization Done.").size(), 2u);
}

TEST(Train, SnapshotGoesOn) {
  const TestFolder folder;
  write_training(folder, "max_iter: 10 snapshot: 5 momentum: 0.9");
  EXPECT_EQ(run_crema(folder, {"train", "--solver=solver.prototxt"}).status, 0);
  const std::string weights = read_file(folder / "s_iter_10.caffemodel");
  const std::string state = read_file(folder / "s_iter_10.solverstate");
  const Ended ended =
      run_crema(folder, {"train", "--solver=solver.prototxt", "--snapshot=s_iter_5.solverstate"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(lines_with(ended.err, "Resuming from s_iter_5.solverstate").size(), 1u);
  EXPECT_EQ(read_file(folder / "s_iter_10.caffemodel"), weights);
  EXPECT_EQ(read_file(folder / "s_iter_10.solverstate"), state);
}

TEST(Train, LogIsReadByTheKnownParsers) {
  const TestFolder folder;
  write_training(folder, "max_iter: 4 display: 2 test_iter: 1 test_interval: 2");
  const Ended ended = run_crema(folder, {"train", "--solver=solver.prototxt"});
  const std::regex prefix(R"(^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [^ ]+:\d+\] (.*)$)");
  const std::regex loss(
      R"(^Iteration \d+ \([-+.\de]+ iter/s, [-+.\de]+s/2 iters\), loss = [-+.\de]+$)");
  const std::regex train(
      R"(^    Train net output #0: loss = [-+.\de]+ \(\* 1 = [-+.\de]+ loss\)$)");
  const std::regex test(R"(^    Test net output #0: loss = [-+.\de]+ \(\* 1 = [-+.\de]+ loss\)$)");
  const std::regex rate(R"(^Iteration \d+, lr = 0.01$)");
  const std::regex testing(R"(^Iteration \d+, Testing net \(#0\)$)");
  int losses = 0, trains = 0, tests = 0, rates = 0, testings = 0;
  for (const std::string& line : split(ended.err, '\n')) {
    std::smatch match;
    if (!std::regex_match(line, match, prefix)) continue;
    const std::string message = match[1];
    losses += std::regex_match(message, loss);
    trains += std::regex_match(message, train);
    tests += std::regex_match(message, test);
    rates += std::regex_match(message, rate);
    testings += std::regex_match(message, testing);
    // The shell parser counts fields: value of a test output, rate.
    std::vector<std::string> fields;
    for (const std::string& field : split(line, ' ')) {
      if (!field.empty()) fields.push_back(field);
    }
    if (contains(line, "Test net output #")) {
      EXPECT_EQ(fields.at(9), "=") << line;
    }
    if (contains(line, ", lr = ")) {
      EXPECT_EQ(fields.at(8), "0.01") << line;
    }
  }
  EXPECT_EQ(losses, 2);
  EXPECT_EQ(trains, 2);
  EXPECT_EQ(rates, 2);
  EXPECT_EQ(tests, 3);
  EXPECT_EQ(testings, 3);
}

// ---- Mistakes -----------------------------------------------------------------------------------

struct Mistake {
  const char* name;
  std::vector<std::string> arguments;
  const char* text;
};

TEST(Train, AnswersMistakesWithOneLine) {
  const TestFolder folder;
  write_training(folder, "max_iter: 2 snapshot: 1");
  ASSERT_EQ(run_crema(folder, {"train", "--solver=solver.prototxt"}).status, 0);
  folder.write("missing_net.prototxt", "net: 'none.prototxt' base_lr: 1 lr_policy: 'fixed'");
  folder.write("no_net.prototxt", "base_lr: 1 lr_policy: 'fixed'");
  folder.write("typo.prototxt", "net: 'net.prototxt' base_lr: 1 lr_polici: 'fixed'");
  folder.write("empty.prototxt", "");
  folder.write("gpu.prototxt", read_file(folder / "solver.prototxt") + " solver_mode: GPU");
  folder.write("cut.solverstate", read_file(folder / "s_iter_2.solverstate").substr(0, 60));
  folder.write("zero.solverstate", "");
  SolverSnapshot lonely = read_solver_state(folder / "s_iter_2.solverstate");
  lonely.learned_net = "gone_iter_1.caffemodel";
  write_solver_state_binary(folder / "lonely.solverstate", lonely);
  const auto train = [](const std::string& solver, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"train", "--solver=" + solver});
    return more;
  };
  const std::string solver = "solver.prototxt";
  const std::vector<Mistake> rows = {
      {"no solver", {"train"}, "crema train needs --solver"},
      {"missing solver", train("none.prototxt"), "none.prototxt: No such file or directory"},
      {"missing net", train("missing_net.prototxt"), "none.prototxt: No such file or directory"},
      {"no net", train("no_net.prototxt"), "no_net.prototxt: no net to train"},
      {"typo", train("typo.prototxt"), "typo.prototxt:1: "},
      {"weights and snapshot", train(solver, {"--weights=a", "--snapshot=b"}),
       "only one of them may be given"},
      {"weights as snapshot", train(solver, {"--snapshot=s_iter_2.caffemodel"}),
       "s_iter_2.caffemodel: "},
      {"state as weights", train(solver, {"--weights=s_iter_2.solverstate"}),
       "s_iter_2.solverstate: "},
      {"missing snapshot", train(solver, {"--snapshot=none.solverstate"}),
       "none.solverstate: No such file"},
      {"missing weights", train(solver, {"--weights=none.caffemodel"}),
       "none.caffemodel: No such file"},
      {"missing second weights", train(solver, {"--weights=s_iter_2.caffemodel, none.caffemodel"}),
       "none.caffemodel: No such file"},
      {"state of missing weights", train(solver, {"--snapshot=lonely.solverstate"}),
       "lonely.solverstate: its weights file \"gone_iter_1.caffemodel\" is not there"},
      {"cut state", train(solver, {"--snapshot=cut.solverstate"}), "cut.solverstate: "},
      {"empty state", train(solver, {"--snapshot=zero.solverstate"}), "zero.solverstate: "},
      {"solver as snapshot", train(solver, {"--snapshot=solver.prototxt"}), "solver.prototxt: "},
      {"cpu and gpu", train(solver, {"--gpu=0"}), "--cpu and --gpu exclude each other"},
      {"precision", train(solver, {"--precision=f16"}),
       "--precision=f16: a CPU has f32 and bf16 only"},
      {"tf32", train(solver, {"--precision=tf32"}), "--precision=tf32 needs a GPU"},
      {"autotune", train(solver, {"--autotune"}), "--autotune needs a GPU"},
      {"layout", train(solver, {"--layout=nhcw"}), "did you mean nchw?"},
      {"fuse", train(solver, {"--fuse=yes"}), "--fuse is on or off, not \"yes\""},
      {"effect", train(solver, {"--sigint_effect=halt"}), "no signal effect \"halt\""},
  };
  const std::vector<std::string> files = folder.files();
  for (const Mistake& row : rows) {
    SCOPED_TRACE(row.name);
    const Ended ended = run_crema(folder, row.arguments);
    expect_error(ended, row.text);
    EXPECT_EQ(lines_with(ended.err, "Creating Layer").size(), 0u) << "found late: " << ended.err;
    EXPECT_EQ(folder.files(), files);
  }
}

TEST(Train, FileKindsAreNamedWhereTheyAreMixedUp) {
  const TestFolder folder;
  write_training(folder, "max_iter: 1");
  ASSERT_EQ(run_crema(folder, {"train", "--solver=solver.prototxt"}).status, 0);
  const Ended weights =
      run_crema(folder, {"train", "--solver=solver.prototxt", "--snapshot=s_iter_1.caffemodel"});
  EXPECT_TRUE(contains(weights.err, "weights")) << weights.err;
  EXPECT_TRUE(contains(weights.err, "solver state")) << weights.err;
  const Ended state =
      run_crema(folder, {"train", "--solver=solver.prototxt", "--weights=s_iter_1.solverstate"});
  EXPECT_TRUE(contains(state.err, "solver state")) << state.err;
}

TEST(Train, AGpuThatIsNotThereIsOneLine) {
  if (run_program("crema", {"device_query", "--gpu=0"}).status == 0)
    GTEST_SKIP() << "there is a GPU";
  const TestFolder folder;
  write_training(folder, "max_iter: 1 solver_mode: GPU");
  RunOptions options;
  options.folder = folder.path();
  expect_error(run_program("crema", {"train", "--solver=solver.prototxt"}, options),
               "--cpu trains on the CPU");
  expect_error(run_program("crema", {"train", "--solver=solver.prototxt", "--gpu=0"}, options), "");
  EXPECT_EQ(run_crema(folder, {"train", "--solver=solver.prototxt"}).status, 0);
}

TEST(Train, UnwritablePrefixIsFoundBeforeTraining) {
  const TestFolder folder;
  write_training(folder, "max_iter: 1");
  folder.write("bad.prototxt",
               "net: 'net.prototxt' base_lr: 0.01 lr_policy: 'fixed' max_iter: 1 "
               "snapshot_prefix: 'no/such/x'");
  const Ended ended = run_crema(folder, {"train", "--solver=bad.prototxt"});
  expect_error(ended, "bad.prototxt: snapshot_prefix \"no/such/x\"");
  EXPECT_FALSE(contains(ended.err, "Starting Optimization"));
}

TEST(Train, SnapshotThatDoesNotFitLeavesTheOldOne) {
  const TestFolder folder;
  write_training(folder, "max_iter: 1");
  folder.write("net.prototxt", constant_net("ip", 100, 100));  // 40,000 bytes of weights
  folder.write("s_iter_1.caffemodel", "old");
  const std::vector<std::string> files = folder.files();
  RunOptions options;
  options.file_limit = 20000;
  for (const char* format : {"", " snapshot_format: HDF5"}) {
    folder.write("solver.prototxt",
                 std::string("net: 'net.prototxt' base_lr: 0.01 lr_policy: 'fixed' max_iter: 1 "
                             "snapshot_prefix: 's'") +
                     format);
    expect_error(run_crema(folder, {"train", "--solver=solver.prototxt"}, options),
                 "cannot write s_iter_1.caffemodel");
    EXPECT_EQ(read_file(folder / "s_iter_1.caffemodel"), "old");
    EXPECT_EQ(folder.files(), files);
  }
}

TEST(Train, FiguresThatDoNotFitStopItWithTheReason) {
  const TestFolder folder;
  write_training(folder, "max_iter: 100 display: 1 snapshot_after_train: false");
  RunOptions options;
  options.file_limit = 100;
  for (const char* flag : {"--tensorboard=tb", "--metrics=m.json"}) {
    expect_error(run_crema(folder, {"train", "--solver=solver.prototxt", flag}, options),
                 "File too large");
  }
}

TEST(Train, StopsAtALossThatIsNotFinite) {
  const TestFolder folder;
  write_training(folder, "max_iter: 200 snapshot: 1");
  folder.write("solver.prototxt",
               "net: 'net.prototxt' base_lr: 1e10 lr_policy: 'fixed' max_iter: 200 snapshot: 1 "
               "snapshot_prefix: 's'");
  const Ended ended = run_crema(folder, {"train", "--solver=solver.prototxt"});
  expect_error(ended, "the loss is ");
  EXPECT_TRUE(contains(ended.err, "is the first that is not finite")) << ended.err;
  EXPECT_TRUE(folder.has("s_iter_1.caffemodel"));
}

// ---- Fine-tuning --------------------------------------------------------------------------------

TEST(Train, WeightsOfAnotherShapeAreRefusedWithBothAndTheAdvice) {
  const TestFolder folder;
  write_training(folder, "max_iter: 1");
  ASSERT_EQ(run_crema(folder, {"train", "--solver=solver.prototxt"}).status, 0);
  folder.write("net.prototxt", constant_net("ip", 4, 5));
  const Ended ended =
      run_crema(folder, {"train", "--solver=solver.prototxt", "--weights=s_iter_1.caffemodel"});
  expect_error(ended, "\"ip\"");
  for (const char* part : {"3 4", "5 4", "rename"})
    EXPECT_TRUE(contains(ended.err, part)) << part << ended.err;
  folder.write("net.prototxt", constant_net("ip_new", 4, 5));
  const Ended renamed =
      run_crema(folder, {"train", "--solver=solver.prototxt", "--weights=s_iter_1.caffemodel"});
  EXPECT_EQ(renamed.status, 0) << renamed.err;
  EXPECT_EQ(lines_with(renamed.err, "Finetuning from s_iter_1.caffemodel").size(), 1u);
  EXPECT_EQ(lines_with(renamed.err, "Ignoring source layer ip").size(), 1u) << renamed.err;
}

TEST(Train, WeightsWithAnotherNumberOfBlobsAreRefused) {
  const TestFolder folder;
  write_training(folder, "max_iter: 1");
  std::string without_bias = constant_net();
  without_bias.replace(without_bias.find("num_output"), 0, "bias_term: false ");
  folder.write("net.prototxt", without_bias);
  ASSERT_EQ(run_crema(folder, {"train", "--solver=solver.prototxt"}).status, 0);
  folder.write("net.prototxt", constant_net());
  expect_error(
      run_crema(folder, {"train", "--solver=solver.prototxt", "--weights=s_iter_1.caffemodel"}),
      "\"ip\"");
}

TEST(Train, StageAndLevelReachTheTrainNet) {
  const TestFolder folder;
  write_training(folder, "max_iter: 1");
  folder.write("net.prototxt", constant_net() +
                                   "layer { name: 'extra' type: 'Silence' bottom: 'y' "
                                   "include { stage: 'special' min_level: 2 } }\n");
  const auto lines = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"train", "--solver=solver.prototxt"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return lines_with(run_crema(folder, arguments).err, "Creating Layer extra").size();
  };
  EXPECT_EQ(lines({}), 0u);
  EXPECT_EQ(lines({"--stage=other,special"}), 0u);
  EXPECT_EQ(lines({"--stage=other,special", "--level=2"}), 1u);
}

}  // namespace
}  // namespace crema
