// The problems of convolution that conv_test.cpp plays.
#pragma once

#include "ops/ops_harness.h"

namespace crema {

/// Sizes of one value stand for all axes; empty ones for the default.
struct ConvRow {
  const char* name = "";
  Shape x{};
  int64_t outputs = 1;
  std::vector<int64_t> kernel{};
  std::vector<int64_t> stride{}, pad{}, dilation{};
  int groups = 1;
  bool bias = true, residual = false, need_dx = true, train = true;
  Act act{};
  float tolerance = 2e-5f;
  DType type = DType::f32;  // of x and y
};

const std::vector<ConvRow>& conv_rows();

}  // namespace crema
