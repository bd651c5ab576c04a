// Damaged weights, solver states, mean files and prototxts: each is read, or refused with a line
// that names it.
#include <gtest/gtest.h>

#include "io/hdf5.h"
#include "io/mean.h"
#include "io/mutations.h"
#include "io/prototxt.h"
#include "io/scratch.h"
#include "io/solver_state.h"
#include "io/weights.h"

namespace crema {
namespace {

/// Damages a file `count` times and reads it; at least `at_least` must be refused, by name.
void expect_refusals(const std::string& bytes, int count, int at_least,
                     const std::function<void(const std::string&)>& read) {
  const TestFolder dir;
  std::string wrong;
  const int refused = count_refused(
      bytes, count, dir / "file",
      [&](const std::string& damaged_bytes) {
        write_file(dir / "file", damaged_bytes);
        read(dir / "file");
      },
      &wrong);
  EXPECT_GE(refused, at_least);
  EXPECT_EQ(wrong, "");
}

TEST(Damage, Weights) {
  const auto read = [](const std::string& path) { read_weights(path); };
  expect_refusals(read_file(test_data("sgd.caffemodel")), 800, 100, read);
  expect_refusals(read_file(test_data("adam.caffemodel.h5")), 400, 50, read);
}

TEST(Damage, SolverStates) {
  const auto read = [](const std::string& path) { read_solver_state(path); };
  expect_refusals(read_file(test_data("sgd.solverstate")), 800, 100, read);
  expect_refusals(read_file(test_data("adam.solverstate.h5")), 400, 50, read);
}

TEST(Damage, MeanFiles) {
  const TestFolder dir;
  write_mean(dir / "mean", {{1, 3, 4, 5}, std::vector<float>(60, 1.0F), {}});
  expect_refusals(read_file(dir / "mean"), 800, 100,
                  [](const std::string& path) { read_mean(path); });
}

TEST(Damage, Prototxts) {
  const std::string folder = std::string(CREMA_SOURCE_DIR) + "/models/lenet/";
  expect_refusals(read_file(folder + "train_val.prototxt"), 800, 400,
                  [](const std::string& path) { read_net(path); });
  expect_refusals(read_file(folder + "solver.prototxt"), 800, 200,
                  [](const std::string& path) { read_solver(path); });
}

/// Brackets beyond what a stack holds, in fields that are known and in fields that are not.
TEST(Damage, NestingWithoutEnd) {
  const TestFolder dir;
  for (const char* opening : {"layer { ", "layer { foo { ", "foo: [ ", "layer < "}) {
    std::string text;
    for (int i = 0; i < 100000; ++i) text += opening;
    write_file(dir / "net", text);
    EXPECT_NE(error_of([&] { read_net(dir / "net"); }), "no error") << opening;
  }
}

}  // namespace
}  // namespace crema
