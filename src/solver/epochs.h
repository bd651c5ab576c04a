// Lengths that are given in epochs, as iterations.
#pragma once

#include <string>

#include "crema.pb.h"
#include "io/prototxt.h"

namespace crema {

/// Sets max_iter, test_interval and snapshot from max_epoch, test_epoch and snapshot_epoch: an
/// epoch is the train net's records over batch_size, iter_size and ranks, results are rounded (up
/// for max_iter), at least 1. The epoch fields are cleared; a solver without them is left alone.
/// Throws Error where a length is given twice or the train net reads no records.
void resolve_epochs(SolverParameter& param, const std::string& file, const ReadOptions& options,
                    int ranks = 1);

}  // namespace crema
