// Graph edits keep node numbers in values and nodes consistent.
#include "net/graph.h"

#include <algorithm>

namespace crema {
namespace {

void renumber(Graph& graph, int from, int by) {
  for (Value& value : graph.values) {
    if (value.producer >= from) value.producer += by;
    for (int& user : value.users) {
      if (user >= from) user += by;
    }
  }
  for (ParamSlot& slot : graph.params) {
    if (slot.node >= from) slot.node += by;
  }
}

}  // namespace

std::vector<int> Graph::read_in_backward(int n) const {
  const Node& node = nodes[static_cast<size_t>(n)];
  std::vector<int> roots;
  if (!node.runs_backward || node.traits.tops_alias_bottom) return roots;
  const auto add = [&](const std::vector<int>& of, uint64_t mask) {
    for (size_t i = 0; i < of.size(); ++i) {
      if (mask >> std::min<size_t>(i, 63) & 1) roots.push_back(root(of[i]));
    }
  };
  add(node.bottoms, node.traits.backward_reads_bottoms);
  add(node.tops, node.traits.backward_reads_tops);
  return roots;
}

void Graph::insert_node(int at, Node node) {
  renumber(*this, at, 1);
  nodes.insert(nodes.begin() + at, std::move(node));
}

std::string place_of(const LayerParameter& layer, const std::string& file) {
  const std::string where = layer.has_source_location() ? layer.source_location() : file;
  return str(where, ": layer \"", layer.name(), "\" (", layer.type(), ")");
}

}  // namespace crema
