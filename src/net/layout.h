// The layout pass: runs of layers that take any layout work in the one their convolutions prefer;
// convert nodes stand only at the edges, one for all readers that need it.
#pragma once

#include "net/graph.h"

namespace crema {

/// Sets Value::layout and inserts convert nodes. force_nchw: everything stays in nchw.
void lay_out(Graph& graph, const Ops& ops, bool force_nchw);

}  // namespace crema
