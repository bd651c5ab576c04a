// The fuse pass: what a layer can do for the one that follows it becomes one step.
#pragma once

#include "net/graph.h"

namespace crema {

/// Offers to each layer the sole layer that reads its top: an activation (ReLU and kin), a
/// learnable scale and bias per channel (Scale behind BatchNorm), the plain sum with a blob that is
/// there already, and, where no backward follows, a channel map (BatchNorm and Scale behind a
/// convolution). A node whose work was taken over is
/// absorbed. A blob that would vanish and is kept (asked for by name) stops that fusion.
void fuse(Graph& graph, bool train);

}  // namespace crema
