// The wire and infer passes: names become edges, layers are made, shapes and parameters are worked
// out, and it is decided where gradients flow. Every mistake of the file is collected.
#pragma once

#include "base/error.h"
#include "net/graph.h"

namespace crema {

struct WireOptions {
  LayerContext context;  // seed, rank; phase and index are set per layer
  std::string file;      // for errors
  bool train = false;    // gradients are wanted at all
};

/// The graph of a filtered net with shapes, parameters and gradient flow. Mistakes go to errors;
/// what depends on a broken layer is passed over silently, so that each mistake is named once.
Graph wire(const NetParameter& net, const WireOptions& options, ErrorList& errors);

}  // namespace crema
