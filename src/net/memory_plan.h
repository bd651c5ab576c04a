// The memory pass: which blobs share which bytes. Time counts steps: forward of node i is i, its
// backward 2n-1-i; what backward computes again before a step comes in between.
#pragma once

#include <vector>

#include "net/graph.h"

namespace crema {

/// A stretch of the arena with its life.
struct PlannedBuffer {
  size_t bytes = 0;
  int first = 0, last = 0;  // steps, both included
  size_t offset = 0;        // the answer
  int inside = -1;          // the buffer it is a piece of, made before it; -1: none
  size_t within = 0;        // where in that one
};

/// Which activations are dropped after forward, and when backward computes them again.
struct Recompute {
  std::vector<uint8_t> dropped;          // per node: its tops
  std::vector<std::vector<int>> before;  // per node: those that run again, in order, just before
                                         // its backward
  bool is_none() const { return dropped.empty(); }
};

/// Gives every buffer an offset such that buffers alive at the same step never overlap, unless one
/// is inside the other; a buffer lives as long as those inside it. Returns the arena's size.
/// Largest first, each at the lowest place that is free for its whole life. Offsets are 64-byte
/// aligned.
size_t place_buffers(std::vector<PlannedBuffer>& buffers);

/// What the plan says of each value and node; -1: none. Indices are into buffers.
struct MemoryPlan {
  std::vector<PlannedBuffer> buffers;
  std::vector<int>
      data;  // per value, the buffer of its root; -1 for values of Input layers (they stay)
  std::vector<int> data_again;  // per value, where it lies after it was computed again; -1: not
  std::vector<int> gradient;    // per value, the buffer of its gradient root
  std::vector<int> saved;       // per node
  std::vector<std::vector<int>>
      temporary;  // per node and bottom: a gradient that the layer cannot add
  std::vector<std::vector<Write>>
      how;  // per node and bottom: whether its gradient overwrites or adds
  int scratch = -1;
  size_t arena_bytes = 0;
  size_t unplanned_bytes = 0;  // all blobs and gradients one beside the other
};

struct MemoryOptions {
  bool train = false;
  bool keep_sources =
      false;  // tops of layers without bottoms stay whole, so that an iteration can be run again
  Recompute recompute{};
};

/// The value that holds the gradient of v: through aliases as far as gradients flow through them.
int gradient_root(const Graph& graph, int v);

/// needs: what each node's plan asked for.
MemoryPlan plan_memory(const Graph& graph, const std::vector<Needs>& needs,
                       const MemoryOptions& options);

}  // namespace crema
