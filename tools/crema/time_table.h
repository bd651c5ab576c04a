// The table of `crema time`: each step of the plan, what was fused into it, and how near it came to
// what the machine can do.
#pragma once

#include <string>
#include <vector>

#include "crema.pb.h"
#include "net/net.h"

namespace crema {

/// Milliseconds per iteration of each step, by its index in the net.
struct StepTimes {
  std::vector<double> forward, backward;
};

/// GFLOP/s of square matrix products on the net's device, the median of several.
double measure_gemm_rate(Ops& ops);

/// One line per step that takes part, and one for their sum: ms, GFLOP, share of gemm_rate
/// (GFLOP/s) and GB/s, each forward and backward. Arithmetic is convolutions' and inner products',
/// done directly; bytes count each tensor of the step once per direction.
std::string time_table(const Net& net, const StepTimes& times, double gemm_rate);

}  // namespace crema
