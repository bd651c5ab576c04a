// Signals sent to crema train as a line of its log appears.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>

#include "base/file.h"
#include "base/str.h"
#include "io/image.h"
#include "tools/crema_nets.h"

namespace crema {
namespace {

constexpr const char* kEndless = "max_iter: 100000000 display: 1 ";

Ended train(const TestFolder& folder, const std::vector<SendSignal>& signals,
            const std::vector<std::string>& flags = {}) {
  std::vector<std::string> arguments = {"train", "--solver=solver.prototxt"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  RunOptions options;
  options.signals = signals;
  return run_crema(folder, arguments, options);
}

size_t snapshots(const Ended& ended) { return lines_with(ended.err, "Snapshotting to ").size(); }

TEST(TrainSignals, InterruptEndsAfterTheIterationWithOneSnapshot) {
  const TestFolder folder;
  write_training(folder, kEndless);
  const Ended ended = train(folder, {{"Iteration 5, lr", SIGINT}});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(snapshots(ended), 1u);
  EXPECT_EQ(lines_with(ended.err, "Optimization stopped early.").size(), 1u);
  EXPECT_EQ(folder.files().size(), 4u);
}

TEST(TrainSignals, InterruptWritesNothingWithoutSnapshotAfterTrain) {
  const TestFolder folder;
  write_training(folder, std::string(kEndless) + "snapshot_after_train: false");
  const Ended ended = train(folder, {{"Iteration 5, lr", SIGINT}});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(folder.files().size(), 2u);
}

TEST(TrainSignals, HangUpSnapshotsAndGoesOn) {
  const TestFolder folder;
  write_training(folder, std::string(kEndless) + "snapshot_after_train: false");
  const Ended ended = train(
      folder, {{"Iteration 5, lr", SIGHUP}, {"Snapshotting solver state", 0}, {", lr", SIGINT}});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(snapshots(ended), 1u);
}

TEST(TrainSignals, EffectsCanBeChosen) {
  const TestFolder folder;
  write_training(folder, std::string(kEndless) + "snapshot_after_train: false");
  const Ended ended = train(
      folder, {{"Iteration 3, lr", SIGINT}, {"Snapshotting solver state", 0}, {", lr", SIGHUP}},
      {"--sigint_effect=snapshot", "--sighup_effect=stop"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(snapshots(ended), 1u);
  const Ended none =
      train(folder, {{"Iteration 3, lr", SIGINT}, {"Iteration 6, lr", SIGINT}, {", lr", SIGHUP}},
            {"--sigint_effect=none", "--sighup_effect=stop"});
  EXPECT_EQ(none.status, 0) << none.err;
  EXPECT_EQ(snapshots(none), 0u);
}

TEST(TrainSignals, InterruptInATestEndsAtOnce) {
  const TestFolder folder;
  write_training(folder, std::string(kEndless) + "test_iter: 100000000 test_interval: 1");
  const Ended ended = train(folder, {{"Iteration 0, Testing net (#0)", SIGINT}});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(lines_with(ended.err, "Test interrupted.").size(), 1u);
  EXPECT_TRUE(folder.has("s_iter_0.solverstate"));
}

void write_fifo(const TestFolder& folder, const std::string& name) {
  ASSERT_EQ(::mkfifo((folder / name).c_str(), 0600), 0);
}

/// A train net of the pictures in list.txt, one per batch, and a test net of constants.
void write_picture_net(const TestFolder& folder, const std::string& list) {
  const Picture picture{
      .height = 2, .width = 2, .channels = 3, .pixels = std::vector<uint8_t>(12, 100)};
  folder.write("a.png", encode(picture, ".png"));
  folder.write("list.txt", list);
  folder.write(
      "net.prototxt",
      "layer { name: 'x' type: 'ImageData' top: 'x' top: 'y' include { phase: TRAIN } "
      "image_data_param { "
      "source: 'list.txt' batch_size: 1 new_height: 2 new_width: 2 } }\n"
      "layer { name: 'x' type: 'DummyData' top: 'x' top: 'y' include { phase: TEST } "
      "dummy_data_param { "
      "shape { dim: 1 dim: 3 dim: 2 dim: 2 } shape { dim: 1 } } }\n"
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip' inner_product_param { "
      "num_output: 2 } }\n"
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'y' top: 'loss' }\n");
}

// Nobody writes to the FIFO: reading ahead waits there for ever.

TEST(TrainSignals, AStopDoesNotWaitForASlowSource) {
  const TestFolder folder;
  write_training(folder, std::string(kEndless) +
                             "test_iter: 100000000 test_interval: 1 test_initialization: false");
  write_picture_net(folder, "a.png 0\nslow.png 0\n");
  write_fifo(folder, "slow.png");
  const Ended ended = train(folder, {{"Iteration 1, Testing net (#0)", SIGINT}});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_TRUE(folder.has("s_iter_1.solverstate"));
}

TEST(TrainSignals, ASecondInterruptKillsWhatDoesNotHearTheFirst) {
  const TestFolder folder;
  write_training(folder, std::string(kEndless) + "test_iter: 1 test_interval: 1");
  write_picture_net(folder, "a.png 0\nslow.png 0\n");
  write_fifo(folder, "slow.png");
  RunOptions options;
  // After this test the second iteration waits for its picture: nothing takes the first signal.
  options.signals = {{"Iteration 1, Testing net (#0)", 0}, {"Test net output #0", SIGINT}};
  options.repeat_last_signal = true;
  const Ended ended = run_crema(folder, {"train", "--solver=solver.prototxt"}, options);
  EXPECT_EQ(ended.status, 128 + SIGINT) << ended.err;
}

}  // namespace
}  // namespace crema
