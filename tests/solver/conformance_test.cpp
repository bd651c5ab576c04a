// Solver cases of the reference: 12 iterations from init.caffemodel, and 4 from a state that the
// reference wrote after 8, end at the parameters that it reached in float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "io/hdf5.h"
#include "solver/solver_harness.h"
#include "test_device.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

const std::string kCases = source_folder() + "/tests/conformance/solvers";
constexpr double kBound = 1e-4;

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  if (!fs::is_directory(kCases)) return names;
  for (const auto& entry : fs::directory_iterator(kCases))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class SolverConformance : public testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SolverConformance);

void expect_params(Solver& solver) {
  Net& net = solver.net();
  const Hdf5File want = Hdf5File::open("expected.h5");
  int compared = 0;
  for (const std::string& name : want.datasets("params")) {
    const size_t slash = name.rfind('/');
    const int layer = net.layer_index(name.substr(0, slash));
    ASSERT_GE(layer, 0) << name;
    const std::vector<float> got =
        net.param_values(net.param_of(layer, std::stoi(name.substr(slash + 1))));
    const HostBlob blob = want.read("params/" + name);
    ASSERT_EQ(got.size(), blob.data.size()) << name;
    double largest = 1e-3, off = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(blob.data[i])));
      off = std::max(off, std::abs(static_cast<double>(got[i]) - blob.data[i]));
    }
    EXPECT_LE(off, kBound * largest) << name;
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST_P(SolverConformance, ReachesTheParameters) {
  const WorkFolder folder;
  fs::copy(fs::path(kCases) / GetParam(), ".", fs::copy_options::recursive);
  const std::string text = read_file("solver.prototxt");
  const std::string state = fs::exists("peer_iter_8.solverstate") ? "peer_iter_8.solverstate"
                                                                  : "peer_iter_8.solverstate.h5";
  {
    SCOPED_TRACE("from init.caffemodel");
    const auto solver = make_solver(text + " weights: 'init.caffemodel'");
    solver->step(12);
    expect_params(*solver);
  }
  {
    SCOPED_TRACE("from the state of the reference");
    const auto solver = make_solver(text, state);
    EXPECT_EQ(solver->iter(), 8);
    solver->step(4);
    expect_params(*solver);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, SolverConformance, testing::ValuesIn(case_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace crema
