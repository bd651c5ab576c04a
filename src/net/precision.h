// The precision pass: runs of layers whose blobs may be 16-bit floats work in them; convert nodes
// stand only at the edges, one for all readers that need it. Parameters, their gradients,
// statistics and losses stay f32.
#pragma once

#include <optional>
#include <string>

#include "net/graph.h"

namespace crema {

struct PrecisionWish {
  std::optional<DType> type;  // of the command; nothing: as the net's fields say
  bool train = false;
  std::string file = "net";  // for notes
};

/// Sets Value::dtype and inserts convert nodes. A run is a set of layers that share blobs, each of
/// which the backend takes (Layer::takes_low); it is lowered where one of them gains. A layer whose
/// forward_type or backward_type is FLOAT stays out. Returns the type in use, f32 where no blob was
/// lowered. Throws Error where the command's type is not to be had; where it is that of the net's
/// fields, a line of the log says so and all is f32.
DType lower_precision(Graph& graph, const Ops& ops, const NetParameter& net,
                      const PrecisionWish& wish);

}  // namespace crema
