// The fuse pass: a sole following activation is offered to the layer before it.
#pragma once

#include "net/graph.h"

namespace crema {

/// Removes activation nodes that the layer before them absorbed. A blob that would vanish and is
/// kept (asked for by name) stops that fusion.
void fuse(Graph& graph);

}  // namespace crema
