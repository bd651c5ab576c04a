// Concat and Slice without a copy: which blobs may lie inside the blob they are pieces of.
#pragma once

#include <vector>

#include "net/graph.h"

namespace crema {

/// One blob that may lie `within` bytes behind the beginning of another. Both are roots.
struct Piece {
  int part = 0, whole = 0;
  size_t within = 0;
};

/// Pieces of data: the parts of a Concat or Slice that follow one another without gaps in the
/// layout they have (nothing lies before the axis), each at a multiple of 64 bytes; a blob is part
/// of one other at most, and memory of an Input layer stays its own. None in a net with sizes that
/// follow the data.
std::vector<Piece> data_pieces(const Graph& graph);

/// Pieces of gradients, by gradient roots. A Concat's parts where its backward is the first to
/// write to them (node: the Concat; used only then); a Slice's where it alone writes to its bottom
/// and every top has a gradient of its own.
struct GradientPieces {
  std::vector<std::vector<Piece>> of_concat;  // per node
  std::vector<Piece> of_slices;
};
GradientPieces gradient_pieces(const Graph& graph);

}  // namespace crema
