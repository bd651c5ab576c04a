// Solver states of the reference and of ours, in both formats.
#include "io/solver_state.h"

#include <gtest/gtest.h>

#include "io/scratch.h"

namespace crema {
namespace {

std::string refusal(const std::string& path) {
  return error_of([&] { read_solver_state(path); });
}

SolverSnapshot full_state() {
  SolverSnapshot state;
  state.iter = 1234;
  state.current_step = 2;
  state.learned_net = "out/x_iter_1234.caffemodel";
  state.history = {{{2, 1}, {1, 2}, {}}, {{}, {3}, {}}, {{2}, {-1, 1e-30f}, {}}};
  state.seed = 0xfedcba9876543210u;
  state.forward_count = 99;
  state.loss_scale = 1024.f;
  state.cursors = {{0, "data", 640}, {1, "test data", 100}};
  state.test_forward_counts = {7, 8};
  return state;
}

void expect_equal(const SolverSnapshot& a, const SolverSnapshot& b) {
  EXPECT_EQ(a.iter, b.iter);
  EXPECT_EQ(a.current_step, b.current_step);
  EXPECT_EQ(a.learned_net, b.learned_net);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.forward_count, b.forward_count);
  EXPECT_EQ(a.loss_scale, b.loss_scale);
  EXPECT_EQ(a.test_forward_counts, b.test_forward_counts);
  ASSERT_EQ(a.history.size(), b.history.size());
  for (size_t i = 0; i < a.history.size(); ++i) {
    EXPECT_EQ(a.history[i].shape, b.history[i].shape);
    EXPECT_EQ(a.history[i].data, b.history[i].data);
  }
  ASSERT_EQ(a.cursors.size(), b.cursors.size());
  for (size_t i = 0; i < a.cursors.size(); ++i) {
    EXPECT_EQ(a.cursors[i].net, b.cursors[i].net);
    EXPECT_EQ(a.cursors[i].layer, b.cursors[i].layer);
    EXPECT_EQ(a.cursors[i].record, b.cursors[i].record);
  }
}

TEST(SolverStateFile, OfTheReference) {
  const SolverSnapshot state = read_solver_state(test_data("sgd.solverstate"));
  EXPECT_EQ(state.iter, 8);
  EXPECT_EQ(state.current_step, 0);
  EXPECT_EQ(state.learned_net, "peer_iter_8.caffemodel");
  ASSERT_EQ(state.history.size(), 4u);
  EXPECT_EQ(state.history[0].shape, (Shape{3, 1, 3, 3}));
  EXPECT_FLOAT_EQ(state.history[0].data[0], -0.010485260f);
  EXPECT_FALSE(state.seed || state.forward_count || state.loss_scale);
  EXPECT_TRUE(state.cursors.empty());
}

TEST(SolverStateFile, OfTheReferenceInHdf5) {
  const SolverSnapshot state = read_solver_state(test_data("adam.solverstate.h5"));
  EXPECT_EQ(state.iter, 8);
  EXPECT_EQ(state.learned_net, "peer_iter_8.caffemodel.h5");
  ASSERT_EQ(state.history.size(), 8u);
  EXPECT_EQ(state.history[6].shape, (Shape{4, 48}));
  EXPECT_FLOAT_EQ(state.history[7].data[0], 3.64326304e-04f);
  EXPECT_FALSE(state.seed);
}

TEST(SolverStateFile, RoundTrip) {
  const TestFolder dir;
  write_solver_state_binary(dir / "s", full_state());
  expect_equal(read_solver_state(dir / "s"), full_state());
  write_solver_state_hdf5(dir / "s.h5", full_state());
  expect_equal(read_solver_state(dir / "s.h5"), full_state());
  write_solver_state_binary(dir / "s", SolverSnapshot{});
  expect_equal(read_solver_state(dir / "s"), SolverSnapshot{});
  write_solver_state_hdf5(dir / "s.h5", SolverSnapshot{});
  expect_equal(read_solver_state(dir / "s.h5"), SolverSnapshot{});
}

TEST(SolverStateFile, HistoryBeyondTenKeepsItsOrderInHdf5) {
  const TestFolder dir;
  SolverSnapshot state;
  for (int i = 0; i < 12; ++i) state.history.push_back({{1}, {static_cast<float>(i)}, {}});
  write_solver_state_hdf5(dir / "s.h5", state);
  expect_equal(read_solver_state(dir / "s.h5"), state);
}

TEST(SolverStateFile, FilesOfAnotherKind) {
  const TestFolder dir;
  const std::string needed = ", a solver state (.solverstate) is needed", s = dir / "s";
  EXPECT_EQ(refusal(s), s + ": No such file or directory");
  write_file(s, "");
  EXPECT_EQ(refusal(s), s + ": is empty" + needed);
  const std::string weights = test_data("sgd.caffemodel"), h5 = test_data("adam.caffemodel.h5");
  EXPECT_EQ(refusal(weights), weights + ": is a weights file (.caffemodel)" + needed);
  EXPECT_EQ(refusal(h5), h5 + ": is a weights file, a solver state (.solverstate.h5) is needed");
  write_file(s, "net: \"x\"\nlr_policy: \"fixed\"\n");
  EXPECT_EQ(refusal(s), s + ": is a text file (prototxt)" + needed);
}

TEST(SolverStateFile, Truncated) {
  const TestFolder dir;
  const std::string whole = read_file(test_data("sgd.solverstate"));
  write_file(dir / "s", whole.substr(0, whole.size() / 2));
  EXPECT_EQ(refusal(dir / "s").rfind(dir / "s" + ": is truncated: ", 0), 0u) << refusal(dir / "s");
  write_file(dir / "s", whole.substr(0, 1));
  EXPECT_EQ(refusal(dir / "s").rfind(dir / "s" + ": is ", 0), 0u) << refusal(dir / "s");
  const std::string h5 = read_file(test_data("adam.solverstate.h5"));
  write_file(dir / "s", h5.substr(0, h5.size() - 100));
  EXPECT_EQ(refusal(dir / "s").rfind(dir / "s" + ": cannot be read as HDF5: truncated", 0), 0u)
      << refusal(dir / "s");
}

TEST(SolverStateFile, AFullDiskLeavesTheOldFile) {
  const TestFolder dir;
  write_solver_state_binary(dir / "s", full_state());
  write_solver_state_hdf5(dir / "s.h5", full_state());
  SolverSnapshot large;
  large.history = {{{1 << 18}, std::vector<float>(1 << 18, 1.f), {}}};
  std::string binary, hdf5;
  {
    const FullDisk full(100000);
    binary = error_of([&] { write_solver_state_binary(dir / "s", large); });
    hdf5 = error_of([&] { write_solver_state_hdf5(dir / "s.h5", large); });
  }
  EXPECT_NE(binary.find("File too large"), std::string::npos) << binary;
  EXPECT_NE(hdf5.find("File too large"), std::string::npos) << hdf5;
  expect_equal(read_solver_state(dir / "s"), full_state());
  expect_equal(read_solver_state(dir / "s.h5"), full_state());
}

}  // namespace
}  // namespace crema
