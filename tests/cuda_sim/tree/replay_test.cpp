// Training by replayed recordings gives the bits of training call by call, and, within rounding,
// the CPU's weights.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/forwarding_ops.h"
#include "solver/solver.h"

namespace crema {
namespace {

/// A small net with all that a recording must hold: convolution, pooling, normalisation, dropout
/// (which draws by the forward count), a rate that changes, test passes between.
constexpr char kSolver[] = R"(
  net_param {
    layer { name: "in" type: "DummyData" top: "x" top: "label" dummy_data_param {
      shape { dim: 4 dim: 3 dim: 8 dim: 8 } shape { dim: 4 }
      data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 1 } } }
    layer { name: "conv" type: "Convolution" bottom: "x" top: "c" convolution_param {
      num_output: 8 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "xavier" } } }
    layer { name: "norm" type: "BatchNorm" bottom: "c" top: "n" }
    layer { name: "scale" type: "Scale" bottom: "n" top: "n" scale_param { bias_term: true } }
    layer { name: "relu" type: "ReLU" bottom: "n" top: "n" }
    layer { name: "pool" type: "Pooling" bottom: "n" top: "p"
      pooling_param { kernel_size: 2 stride: 2 } }
    layer { name: "lrn" type: "LRN" bottom: "p" top: "l" }
    layer { name: "drop" type: "Dropout" bottom: "l" top: "d" }
    layer { name: "ip" type: "InnerProduct" bottom: "d" top: "s" inner_product_param {
      num_output: 5 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "s" bottom: "label" top: "loss" }
  }
  base_lr: 0.01 lr_policy: "inv" gamma: 0.1 power: 0.75
  max_iter: 100 test_iter: 1 test_interval: 3 random_seed: 5
)";

/// Fields of the solver, and how many replays 8 iterations have at least.
struct ReplayCase {
  const char* name;
  const char* solver;
  int replays;
};

void PrintTo(const ReplayCase& row, std::ostream* out) { *out << row.name; }

struct Trained {
  std::vector<std::vector<float>> params;
  int replays = 0;
};

Trained train(const std::shared_ptr<Ops>& device, const char* fields, bool records,
              int iterations) {
  SolverParameter param;
  parse_text(std::string(kSolver) + fields, "solver", &param);
  SolverOptions options;
  const auto ops = std::make_shared<ForwardingOps>(device, records);
  options.ops = ops;
  Solver solver(param, options);
  solver.step(iterations);
  Trained trained;
  for (size_t i = 0; i < solver.net().params().size(); ++i) {
    trained.params.push_back(solver.net().param_values(static_cast<int>(i)));
  }
  trained.replays = ops->replays();
  return trained;
}

class Replayed : public testing::TestWithParam<ReplayCase> {};

TEST_P(Replayed, GivesTheBitsOfCallByCall) {
  const std::shared_ptr<Ops> gpu = make_ops({.gpu = true});
  const Trained eager = train(gpu, GetParam().solver, false, 8);
  const Trained replayed = train(gpu, GetParam().solver, true, 8);
  EXPECT_EQ(eager.replays, 0);
  EXPECT_GE(replayed.replays, GetParam().replays);
  ASSERT_EQ(eager.params.size(), replayed.params.size());
  for (size_t i = 0; i < eager.params.size(); ++i) {
    EXPECT_EQ(eager.params[i], replayed.params[i]) << "parameter " << i;
  }
}

TEST_P(Replayed, FollowsTheCpu) {
  const Trained gpu = train(make_ops({.gpu = true}), GetParam().solver, true, 3);
  const Trained cpu = train(make_ops({}), GetParam().solver, false, 3);
  ASSERT_EQ(cpu.params.size(), gpu.params.size());
  for (size_t i = 0; i < cpu.params.size(); ++i) {
    ASSERT_EQ(cpu.params[i].size(), gpu.params[i].size());
    for (size_t j = 0; j < cpu.params[i].size(); ++j) {
      EXPECT_NEAR(cpu.params[i][j], gpu.params[i][j], 1e-3) << "parameter " << i << ", " << j;
    }
  }
}

// Forward, backward and update are each replayed from the third iteration on.
INSTANTIATE_TEST_SUITE_P(
    Solvers, Replayed,
    testing::Values(
        ReplayCase{"sgd", "type: 'SGD' momentum: 0.9", 3 * 6},
        ReplayCase{"nesterov_accumulates", "type: 'Nesterov' momentum: 0.9 iter_size: 2", 5 * 6},
        ReplayCase{"adagrad_clips", "type: 'AdaGrad' clip_gradients: 0.1", 3 * 6},
        // The momentum changes, so the update is not recorded.
        ReplayCase{"momentum_policy",
                   "type: 'SGD' momentum: 0.5 momentum_policy: 'poly' max_momentum: 0.95", 2 * 6}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace crema
