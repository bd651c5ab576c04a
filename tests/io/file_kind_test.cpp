// What a file is, told from its first bytes.
#include "io/file_kind.h"

#include <gtest/gtest.h>

#include "io/mean.h"
#include "io/scratch.h"

namespace crema {
namespace {

TEST(FileKind, OfTheReferencesFiles) {
  EXPECT_EQ(kind_of_bytes(read_file(test_data("sgd.solverstate"))), FileKind::solver_state);
  EXPECT_EQ(kind_of_bytes(read_file(test_data("sgd.caffemodel"))), FileKind::weights);
  EXPECT_EQ(kind_of_bytes(read_file(test_data("adam.solverstate.h5"))), FileKind::hdf5);
  const TestFolder dir;
  write_mean(dir / "mean", {{1, 1, 1, 2}, {1, 2}, {}});
  EXPECT_EQ(kind_of_bytes(read_file(dir / "mean")), FileKind::blob);
}

/// A state's first number alone, as of a file that is cut there, and one number after another.
TEST(FileKind, OfStatesThatEndEarly) {
  EXPECT_EQ(kind_of_bytes("\x08\x05"), FileKind::solver_state);
  EXPECT_EQ(kind_of_bytes("\x08\x05\x08\x06\x12\x01x"), FileKind::solver_state);
  EXPECT_EQ(kind_of_bytes("\x08"), FileKind::unknown);
}

}  // namespace
}  // namespace crema
