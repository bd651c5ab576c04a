// Where the time of a step goes: a line per layer and direction, the longest first.
#pragma once

#include <functional>

#include "crema.pb.h"
#include "net/net.h"

namespace crema {

/// Runs the net's layers one by one, `iterations` times, and prints medians with the rates that
/// step_cost.h counts. param: the net as in count_cost; clock: seconds from any point.
void print_layer_table(Net& net, const NetParameter& param, int iterations,
                       const std::function<double()>& clock);

}  // namespace crema
