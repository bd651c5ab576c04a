// The absorbed layer's top becomes the top of the layer before it.
#include "net/fuse.h"

#include <algorithm>

namespace crema {
namespace {

bool can_vanish(const Graph& graph, const Value& value, int user) {
  return value.users.size() == 1 && value.users[0] == user && !value.kept &&
         value.loss_weight == 0 && value.alias_of < 0 && !graph.nodes[value.producer].is_input &&
         graph.nodes[value.producer].tops.size() == 1;
}

enum class Offer { affine, channel_map, sum, activation };

/// Whether the layer before takes over the work of node.
bool is_taken(Node& before, Node& node, Offer offer) {
  switch (offer) {
    case Offer::sum:
      return before.layer->absorb_sum();
    case Offer::activation: {
      const std::optional<Act> act = node.layer->as_activation();
      return act && before.layer->absorb(*act);
    }
    case Offer::channel_map:
      return node.layer->is_channel_map() && before.layer->absorb_channel_map(*node.layer);
    case Offer::affine:
      break;
  }
  const std::span<Param> affine = node.layer->channel_affine();
  if (affine.empty() || !before.layer->absorb_affine(affine)) return false;
  before.absorbed_params = node.params;
  return true;
}

/// The place among the bottoms of node `index` whose producer may take it over; -1: none. Of a
/// sum's two blobs it is the one made last, so that the other is there.
int place_of_offer(const Graph& graph, const Node& node, Offer offer) {
  if (node.is_absorbed || node.tops.size() != 1) return -1;
  if (offer != Offer::sum) return node.bottoms.size() == 1 ? 0 : -1;
  if (!node.layer->is_sum() || node.bottoms.size() != 2) return -1;
  const int first = graph.values[node.bottoms[0]].producer;
  const int second = graph.values[node.bottoms[1]].producer;
  if (first == second) return -1;
  return first > second ? 0 : 1;
}

/// The node before reads what node `index` reads beside the blob between them.
void move_bottom(Graph& graph, int index, size_t place, int before) {
  Node& node = graph.nodes[index];
  const int other = node.bottoms[place];
  std::vector<int>& users = graph.values[other].users;
  users.erase(std::find(users.begin(), users.end(), index));
  users.insert(std::upper_bound(users.begin(), users.end(), before), before);
  graph.nodes[before].bottoms.push_back(other);
  graph.nodes[before].propagates.push_back(node.propagates[place]);
}

void absorb_node(Graph& graph, int index, Offer offer) {
  Node& node = graph.nodes[index];
  const int place = place_of_offer(graph, node, offer);
  if (place < 0) return;
  const int between = node.bottoms[static_cast<size_t>(place)], top = node.tops[0];
  if (!can_vanish(graph, graph.values[between], index)) return;
  const int before_index = graph.values[between].producer;
  Node& before = graph.nodes[before_index];
  const bool cuts_gradient =
      before.runs_backward && node.runs_backward && !node.propagates[static_cast<size_t>(place)];
  if (cuts_gradient || graph.values[top].alias_of >= 0) return;
  if (!is_taken(before, node, offer)) return;
  if (offer == Offer::sum) move_bottom(graph, index, static_cast<size_t>(1 - place), before_index);
  graph.values[top].producer = before_index;
  graph.values[top].producer_top = 0;
  graph.values[between].users.clear();
  graph.values[between].producer = -1;
  before.tops[0] = top;
  before.absorbed_names.push_back(node.param.name());
  before.absorbed_names.insert(before.absorbed_names.end(), node.absorbed_names.begin(),
                               node.absorbed_names.end());
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
  // Batch norm takes its scale first, so that both fold into the convolution as one map; then a sum
  // with another blob; then what is left takes the activation behind it.
  for (const Offer offer : {Offer::affine, Offer::channel_map, Offer::sum, Offer::activation}) {
    if (offer == Offer::channel_map && train) continue;
    for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) absorb_node(graph, i, offer);
  }
}

}  // namespace crema
