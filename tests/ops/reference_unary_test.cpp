// The oracle's elementwise formulas: slopes against differences of the values, in float64.
#include <gtest/gtest.h>

#include "reference/plans.h"

namespace crema {
namespace {

struct Formula {
  Unary kind;
  UnaryArgs args;
  double low, high;
};

TEST(ReferenceUnary, SlopesAreThoseOfTheValues) {
  const std::vector<Formula> formulas = {
      {Unary::relu, {.a = 0.1f}, -2, 2},
      {Unary::relu6, {}, -2, 8},
      {Unary::elu, {.a = 0.7f}, -3, 3},
      {Unary::sigmoid, {}, -6, 6},
      {Unary::tanh, {}, -4, 4},
      {Unary::swish, {.a = 1.5f}, -4, 4},
      {Unary::bnll, {}, -6, 6},
      {Unary::absval, {}, -2, 2},
      {Unary::power, {0.5f, 3, 2.5f}, -2, 2},
      {Unary::power, {0.5f, 3, -1}, -2, 2},
      {Unary::exp, {0.7f, 0.3f}, -3, 3},
      {Unary::log, {0.5f, 3, 0.4f}, -3, 3},
      {Unary::clip, {.a = -1, .b = 1}, -2, 2},
      {Unary::threshold, {.a = 0.3f}, -2, 2},
  };
  const double step = 1e-5;
  for (const Formula& f : formulas) {
    for (int i = 0; i < 37; ++i) {
      const double x = f.low + (f.high - f.low) * (i + 0.37) / 37;
      const double difference = (reference::unary_value(f.kind, f.args, x + step) -
                                 reference::unary_value(f.kind, f.args, x - step)) /
                                (2 * step);
      EXPECT_NEAR(reference::unary_slope(f.kind, f.args, x), difference, 1e-7)
          << static_cast<int>(f.kind) << " at " << x;
    }
  }
}

TEST(ReferenceUnary, SlopesFromYAreThoseFromX) {
  const std::vector<Formula> formulas = {
      {Unary::relu, {.a = 0.1f}, -2, 2}, {Unary::relu6, {}, -2, 8},
      {Unary::elu, {.a = 0.7f}, -3, 3},  {Unary::sigmoid, {}, -6, 6},
      {Unary::tanh, {}, -4, 4},          {Unary::exp, {0.7f, 0.3f}, -3, 3},
  };
  for (const Formula& f : formulas) {
    for (int i = 0; i < 37; ++i) {
      const double x = f.low + (f.high - f.low) * (i + 0.37) / 37;
      const double y = reference::unary_value(f.kind, f.args, x);
      EXPECT_NEAR(reference::unary_slope_from_y(f.kind, f.args, y),
                  reference::unary_slope(f.kind, f.args, x), 1e-9);
    }
  }
}

}  // namespace
}  // namespace crema
