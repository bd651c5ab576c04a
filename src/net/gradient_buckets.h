// Buckets: the stretches of gradient memory that ranks sum as soon as backward is through with
// them, so that a sum runs beside what is left of backward.
#pragma once

#include <vector>

#include "net/graph.h"
#include "net/net.h"

namespace crema {

struct GradientBucket {
  Tensor gradient;  // a stretch of one group's memory
  /// The last node, in the order of backward (from the last one down), that writes into it; the
  /// number of nodes where none does: it is final from the beginning.
  int last_writer = 0;
};

/// Cuts the gradients of each group into buckets of at least `bytes`, whole parameters each, from
/// the end of the group's memory, which backward reaches first, to its beginning, where what is
/// left is the last one. In the order in which backward is through with them. `params` and `groups`
/// are of the net that graph became.
std::vector<GradientBucket> gradient_buckets(const Graph& graph,
                                             const std::vector<NetParam>& params,
                                             const std::vector<Net::Group>& groups, size_t bytes);

}  // namespace crema
