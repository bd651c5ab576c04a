// The CPU backend as the rest of ops sees it: without oneDNN's headers.
#pragma once

#include <memory>

#include "ops/ops.h"

namespace crema {

std::shared_ptr<Ops> make_cpu_ops();

}  // namespace crema
