// Trading time for memory: which activations are dropped after forward, to be computed again in
// backward.
#pragma once

#include "net/memory_plan.h"

namespace crema {

/// What the net's file and the caller ask for.
struct RecomputeWish {
  bool everywhere = false;         // the net's own field
  std::vector<int8_t> layer_wish;  // per node: 1 drop its tops, 0 keep them, -1 as the net says
  size_t fixed_bytes = 0;          // what the net takes beside its arena
  size_t limit = 0;                // of all bytes; 0: none
  bool is_asked_for() const;
};

/// The order in which backward computes what was dropped, each node at most once, just before the
/// first step that reads it. dropped: per node.
Recompute schedule_recompute(const Graph& graph, std::vector<uint8_t> dropped);

/// Whether a node's tops can be dropped: it is repeatable, has bottoms, is no host layer, and
/// nobody asked for its tops.
bool is_droppable(const Graph& graph, int node);

/// The cheapest choice that fits into the limit. Without a limit, or where none fits, the one that
/// takes least memory while what is computed again costs no more than a quarter of the step, by a
/// count of arithmetic and bytes.
Recompute choose_recompute(const Graph& graph, const std::vector<Needs>& needs,
                           const MemoryOptions& options, const RecomputeWish& wish);

}  // namespace crema
