// The absorbed layer's top becomes the top of the layer before it.
#include "net/fuse.h"

namespace crema {
namespace {

bool can_vanish(const Graph& graph, const Value& value, int user) {
  return value.users.size() == 1 && value.users[0] == user && !value.kept &&
         value.loss_weight == 0 && value.alias_of < 0 && !graph.nodes[value.producer].is_input &&
         graph.nodes[value.producer].tops.size() == 1;
}

enum class Offer { affine, channel_map, activation };

/// Whether the layer before takes over the work of node.
bool is_taken(Node& before, Node& node, Offer offer) {
  if (offer == Offer::activation) {
    const std::optional<Act> act = node.layer->as_activation();
    return act && before.layer->absorb(*act);
  }
  if (offer == Offer::channel_map) {
    return node.layer->is_channel_map() && before.layer->absorb_channel_map(*node.layer);
  }
  const std::span<Param> affine = node.layer->channel_affine();
  if (affine.empty() || !before.layer->absorb_affine(affine)) return false;
  before.absorbed_params = node.params;
  return true;
}

void absorb_node(Graph& graph, int index, Offer offer) {
  Node& node = graph.nodes[index];
  if (node.bottoms.size() != 1 || node.tops.size() != 1) return;
  const int between = node.bottoms[0], top = node.tops[0];
  if (!can_vanish(graph, graph.values[between], index)) return;
  Node& before = graph.nodes[graph.values[between].producer];
  const bool cuts_gradient = before.runs_backward && node.runs_backward && !node.propagates[0];
  if (cuts_gradient || graph.values[top].alias_of >= 0) return;
  if (!is_taken(before, node, offer)) return;
  graph.values[top].producer = graph.values[between].producer;
  graph.values[top].producer_top = 0;
  graph.values[between].users.clear();
  graph.values[between].producer = -1;
  before.tops[0] = top;
  before.traits = before.layer->traits();
  before.runs_backward = before.runs_backward || node.runs_backward;
  node.bottoms.clear();
  node.tops.clear();
  node.propagates.clear();
  node.runs_backward = false;
  node.is_absorbed = true;
}

}  // namespace

void fuse(Graph& graph, bool train) {
  // Batch norm takes its scale first, so that both fold into the convolution as one map; then what
  // is left takes the activation behind it.
  for (const Offer offer : {Offer::affine, Offer::channel_map, Offer::activation}) {
    if (offer == Offer::channel_map && train) continue;
    for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) absorb_node(graph, i, offer);
  }
}

}  // namespace crema
