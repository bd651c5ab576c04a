// What makes pieces: one row along the axis, equal layouts, aligned beginnings, one owner.
#include "net/pieces.h"

#include <algorithm>

#include "layers/axis_view.h"
#include "net/memory_plan.h"

namespace crema {
namespace {

constexpr size_t kAlignment = 64;

bool has_dynamic_shapes(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return !node.is_absorbed && node.layer->shapes_after_forward().has_value();
  });
}

/// The pieces of a node by its own values; empty where a copy is needed.
std::vector<Piece> pieces_of(const Graph& graph, const Node& node) {
  const LayerTraits& traits = node.traits;
  if (node.is_absorbed || traits.pieces == Pieces::none || traits.tops_alias_bottom) return {};
  const bool are_bottoms = traits.pieces == Pieces::bottoms;
  const std::vector<int>& parts = are_bottoms ? node.bottoms : node.tops;
  const int whole = are_bottoms ? node.tops[0] : node.bottoms[0];
  const TensorDesc wide = graph.values[whole].desc();
  if (view_along(wide, traits.pieces_axis).outer != 1) return {};
  std::vector<Piece> pieces;
  size_t within = 0;
  for (const int part : parts) {
    const TensorDesc narrow = graph.values[part].desc();
    if (narrow.layout != wide.layout || narrow.dtype != wide.dtype || within % kAlignment != 0)
      return {};
    pieces.push_back({part, whole, within});
    within += narrow.bytes();
  }
  return pieces;
}

size_t bytes_of(const Graph& graph, int v) { return graph.values[v].desc().bytes(); }

/// The gradient of a value that nobody but its one last reader and its producer touch.
bool is_plain_gradient(const Graph& graph, int root) {
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer < 0 || gradient_root(graph, static_cast<int>(v)) != root) continue;
    if (value.kept || value.loss_weight != 0) return false;
  }
  return graph.values[root].has_gradient;
}

/// Whether node n is the only one whose backward writes the gradient of root.
bool writes_alone(const Graph& graph, int n, int root) {
  for (size_t m = 0; m < graph.nodes.size(); ++m) {
    const Node& node = graph.nodes[m];
    if (static_cast<int>(m) == n || !node.runs_backward) continue;
    for (size_t b = 0; b < node.bottoms.size(); ++b) {
      const bool is_alias = node.traits.tops_alias_bottom && b == 0;
      if (node.propagates[b] && !is_alias && gradient_root(graph, node.bottoms[b]) == root) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

std::vector<Piece> data_pieces(const Graph& graph) {
  std::vector<Piece> all;
  if (has_dynamic_shapes(graph)) return all;
  std::vector<uint8_t> is_part(graph.values.size(), 0), is_whole(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    std::vector<Piece> pieces = pieces_of(graph, node);
    bool fits = !pieces.empty();
    std::vector<int> seen;
    for (Piece& piece : pieces) {
      const size_t bytes = bytes_of(graph, piece.part);
      piece.part = graph.root(piece.part);
      piece.whole = graph.root(piece.whole);
      const bool is_repeated = std::find(seen.begin(), seen.end(), piece.part) != seen.end();
      const bool from_outside = graph.nodes[graph.values[piece.part].producer].is_input ||
                                graph.nodes[graph.values[piece.whole].producer].is_input;
      fits = fits && !is_repeated && !from_outside && !is_part[piece.part] &&
             !is_whole[piece.whole] && piece.part != piece.whole &&
             bytes_of(graph, piece.part) == bytes;
      seen.push_back(piece.part);
    }
    // A part that is itself the whole of others would need an order of placing; it is copied.
    for (const Piece& piece : pieces) fits = fits && !is_whole[piece.part] && !is_part[piece.whole];
    if (!fits) continue;
    for (const Piece& piece : pieces) is_part[piece.part] = is_whole[piece.whole] = 1;
    all.insert(all.end(), pieces.begin(), pieces.end());
  }
  return all;
}

GradientPieces gradient_pieces(const Graph& graph) {
  GradientPieces all;
  all.of_concat.resize(graph.nodes.size());
  if (has_dynamic_shapes(graph)) return all;
  std::vector<uint8_t> is_taken(graph.values.size(), 0);
  const auto by_roots = [&](std::vector<Piece> pieces) {
    for (Piece& piece : pieces) {
      piece.part = gradient_root(graph, piece.part);
      piece.whole = gradient_root(graph, piece.whole);
    }
    return pieces;
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.traits.pieces != Pieces::tops || !node.runs_backward || !node.propagates[0]) continue;
    const std::vector<Piece> pieces = by_roots(pieces_of(graph, node));
    bool fits = !pieces.empty();
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Piece& piece = pieces[i];
      fits = fits && piece.part == node.tops[i] && is_plain_gradient(graph, piece.part) &&
             is_plain_gradient(graph, piece.whole) && !is_taken[piece.whole] &&
             writes_alone(graph, static_cast<int>(n), piece.whole);
    }
    if (!fits) continue;
    for (const Piece& piece : pieces) is_taken[piece.part] = is_taken[piece.whole] = 1;
    all.of_slices.insert(all.of_slices.end(), pieces.begin(), pieces.end());
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.traits.pieces != Pieces::bottoms || !node.runs_backward) continue;
    const std::vector<Piece> pieces = pieces_of(graph, node);
    for (size_t b = 0; b < pieces.size(); ++b) {
      const Piece piece = by_roots({pieces[b]})[0];
      const bool fits = node.propagates[b] && !is_taken[piece.part] && piece.part != piece.whole &&
                        is_plain_gradient(graph, piece.part) &&
                        is_plain_gradient(graph, piece.whole) &&
                        bytes_of(graph, piece.part) == bytes_of(graph, pieces[b].part);
      if (fits) all.of_concat[n].push_back(piece);
    }
  }
  return all;
}

}  // namespace crema
