// Numbers that are not finite: in the solver's file, and in weights whose effect a fused activation
// would hide.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "solver/solver_harness.h"

namespace crema {
namespace {

std::string net_with(const std::string& layers) {
  return str(
      "net_param { layer { name: 'd' type: 'DummyData' top: 'x' top: 't' dummy_data_param { shape "
      "{ dim: 2 dim: 8 dim: 6 dim: 6 } shape { dim: 2 dim: 1 } data_filler { type: 'gaussian' } "
      "data_filler { value: 1 } } } ",
      layers,
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'y' top: 'ip' inner_product_param { "
      "num_output: 1 weight_filler { type: 'xavier' } } } "
      "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 't' top: 'loss' } } "
      "base_lr: 0.01 lr_policy: 'fixed' max_iter: 2 random_seed: 1 snapshot_after_train: false ");
}

std::string convolution(const std::string& fields) {
  return str(
      "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { num_output: "
      "8 kernel_size: 3 ",
      fields, " } } ");
}

/// What solve() ends with.
std::string end_of(Solver& solver) {
  try {
    solver.solve();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(NotFinite, WeightsBehindAnActivationAreNamed) {
  for (const char* type : {"ReLU", "ReLU6", "ELU"}) {
    for (const char* fields : {"weight_filler { value: nan }", "bias_filler { value: inf }",
                               "group: 8 weight_filler { value: nan }"}) {
      const WorkFolder folder;
      const auto solver = make_solver(net_with(str(convolution(fields), "layer { name: 'r' type: '",
                                                   type, "' bottom: 'y' top: 'y' } ")));
      const std::string text = end_of(*solver);
      EXPECT_EQ(text.find("iteration 0: the loss is nan; layer \"c\" (Convolution), parameter "),
                0u)
          << type << ", " << fields << ": " << text;
    }
  }
}

TEST(NotFinite, WeightsThatGoAstrayLaterAreNamed) {
  const WorkFolder folder;
  const auto solver =
      make_solver(net_with(str(convolution("weight_filler { type: 'xavier' }"),
                               "layer { name: 'r' type: 'ReLU' bottom: 'y' top: 'y' } ")));
  solver->step(1);
  std::vector<float> values = solver->net().param_values(0);
  values[7] = -INFINITY;
  solver->net().set_param_values(0, values);
  solver->net().params_changed();
  const std::string text = end_of(*solver);
  EXPECT_EQ(text.find("iteration 1: the loss is nan; layer \"c\" (Convolution), parameter 0"), 0u)
      << text;
}

TEST(NotFinite, NumbersOfTheSolver) {
  const WorkFolder folder;
  for (const char* field : {"gamma", "power", "momentum", "momentum2", "weight_decay", "delta",
                            "clip_gradients", "rms_decay"}) {
    for (const char* value : {"nan", "inf", "-inf"}) {
      const std::string text = solver_error(
          str(net_with(convolution("weight_filler { type: 'xavier' }")), " ", field, ": ", value));
      EXPECT_NE(text.find(str(field, " must be finite, not ")), std::string::npos)
          << field << " " << value << ": " << text;
    }
  }
}

}  // namespace
}  // namespace crema
