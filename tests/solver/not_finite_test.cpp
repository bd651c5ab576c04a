// Numbers of the solver that are not finite: each is refused with its field.
#include <gtest/gtest.h>

#include "base/error.h"
#include "solver/solver_harness.h"

namespace crema {
namespace {

TEST(NotFinite, NumbersOfTheSolver) {
  const WorkFolder folder;
  for (const char* field : {"gamma", "power", "momentum", "momentum2", "weight_decay", "delta",
                            "clip_gradients", "rms_decay"}) {
    for (const char* value : {"nan", "inf", "-inf"}) {
      const std::string text = solver_error(
          str("net_param { layer { name: 'd' type: 'DummyData' top: 'x' dummy_data_param { shape { "
              "dim: 1 } } } } base_lr: 0.01 lr_policy: 'fixed' max_iter: 2 ",
              field, ": ", value));
      EXPECT_NE(text.find(str(field, " must be finite, not ")), std::string::npos)
          << field << " " << value << ": " << text;
    }
  }
}

}  // namespace
}  // namespace crema
