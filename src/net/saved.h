// The net as Caffe writes it: with a Split layer behind every blob that several layers read.
#pragma once

#include <vector>

#include "net/graph.h"

namespace crema {

struct SavedLayer {
  LayerParameter param;
  int node = -1;                  // in the wired graph; -1: a Split
  std::vector<int> top_values;    // a Split's tops are all the value that it splits
  std::vector<uint8_t> in_place;  // per top
};

/// The layers of a wired graph in order, Split layers put in, names as Caffe makes them
/// (BLOB_LAYER_TOP_split and BLOB_LAYER_TOP_split_K).
std::vector<SavedLayer> saved_layers(const Graph& graph);

}  // namespace crema
