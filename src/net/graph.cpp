// Graph edits keep node numbers in values and nodes consistent.
#include "net/graph.h"

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

void Graph::insert_node(int at, Node node) {
  renumber(*this, at, 1);
  nodes.insert(nodes.begin() + at, std::move(node));
}

std::string place_of(const LayerParameter& layer, const std::string& file) {
  const std::string where = layer.has_source_location() ? layer.source_location() : file;
  return str(where, ": layer \"", layer.name(), "\" (", layer.type(), ")");
}

}  // namespace crema
