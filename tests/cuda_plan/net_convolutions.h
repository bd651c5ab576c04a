// The convolutions that a net would ask its backend to plan.
#pragma once

#include <string>
#include <vector>

#include "ops/ops.h"

namespace crema {

struct NetConvolution {
  std::string layer;
  ConvDesc desc;
};

/// Of the net in file, its inputs' batch set to `batch`; each problem once, as for training.
std::vector<NetConvolution> net_convolutions(const std::string& file, int64_t batch);

}  // namespace crema
