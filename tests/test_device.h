// Where a test program runs: on the CPU, or with CREMA_TEST_DEVICE=gpu on the first GPU, real or
// simulated; and, with CREMA_TEST_SOURCE, beside a copy of the source tree.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "ops/ops.h"

namespace crema {

/// The device that a test runs on.
inline Device test_device(int index = 0) {
  const char* wanted = std::getenv("CREMA_TEST_DEVICE");
  const bool gpu = wanted != nullptr && std::string_view(wanted) == "gpu";
  return {.gpu = gpu, .index = gpu ? index : 0};
}

#ifdef CREMA_SOURCE_DIR
inline std::string source_folder() {
  const char* copy = std::getenv("CREMA_TEST_SOURCE");
  return copy != nullptr ? copy : CREMA_SOURCE_DIR;
}
#endif

}  // namespace crema
