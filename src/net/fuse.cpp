// The activation's top becomes the top of the layer that absorbed it.
#include "net/fuse.h"

namespace crema {
namespace {

bool can_vanish(const Graph& graph, const Value& value, int user) {
  return value.users.size() == 1 && value.users[0] == user && !value.kept &&
         value.loss_weight == 0 && value.alias_of < 0 && !graph.nodes[value.producer].is_input &&
         graph.nodes[value.producer].tops.size() == 1;
}

bool absorb_node(Graph& graph, int index) {
  Node& node = graph.nodes[index];
  const std::optional<Act> act = node.layer->as_activation();
  if (!act || node.bottoms.size() != 1) return false;
  const Value& between = graph.values[node.bottoms[0]];
  if (!can_vanish(graph, between, index)) return false;
  Node& before = graph.nodes[between.producer];
  if (before.runs_backward && !node.propagates[0]) return false;
  if (!before.layer->absorb(*act)) return false;
  const int top = node.tops[0];
  graph.values[node.bottoms[0]].users.clear();
  graph.values[node.bottoms[0]].producer = -1;
  graph.values[top].producer = graph.values[top].producer_top = 0;
  before.tops[0] = top;
  before.traits = before.layer->traits();
  return true;
}

}  // namespace

void fuse(Graph& graph) {
  for (int i = 0; i < static_cast<int>(graph.nodes.size());) {
    const int before =
        graph.nodes[i].bottoms.empty() ? -1 : graph.values[graph.nodes[i].bottoms[0]].producer;
    if (!absorb_node(graph, i)) {
      ++i;
      continue;
    }
    graph.values[graph.nodes[i].tops[0]].producer = before;
    graph.remove_node(i);
  }
}

}  // namespace crema
