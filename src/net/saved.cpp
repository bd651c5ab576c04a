// A loss weight counts as one more reader and moves to the first of the split's tops.
#include "net/saved.h"

#include <map>

namespace crema {
namespace {

std::string split_name(const Graph& graph, const Value& value) {
  return str(value.name, "_", graph.nodes[value.producer].param.name(), "_", value.producer_top,
             "_split");
}

bool is_split(const Value& value) {
  return value.users.size() + (value.loss_weight != 0 && !value.users.empty()) > 1;
}

SavedLayer make_split(const Graph& graph, int v) {
  const Value& value = graph.values[v];
  SavedLayer split;
  split.param.set_name(split_name(graph, value));
  split.param.set_type("Split");
  split.param.add_bottom(value.name);
  const int tops = static_cast<int>(value.users.size()) + (value.loss_weight != 0);
  for (int k = 0; k < tops; ++k) {
    split.param.add_top(str(split.param.name(), "_", k));
    split.top_values.push_back(v);
    split.in_place.push_back(0);
    if (value.loss_weight != 0) split.param.add_loss_weight(k == 0 ? value.loss_weight : 0);
  }
  return split;
}

}  // namespace

std::vector<SavedLayer> saved_layers(const Graph& graph) {
  std::vector<SavedLayer> layers;
  std::map<int, int> next_top;  // of each value that is split
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    SavedLayer layer;
    layer.param = node.param;
    layer.param.clear_blobs();
    layer.node = static_cast<int>(n);
    layer.top_values = node.tops;
    bool is_renamed = false;
    for (size_t b = 0; b < node.bottoms.size(); ++b) {
      const Value& value = graph.values[node.bottoms[b]];
      if (!is_split(value)) continue;
      const auto [it, fresh] = next_top.emplace(node.bottoms[b], value.loss_weight != 0 ? 1 : 0);
      layer.param.set_bottom(static_cast<int>(b), str(split_name(graph, value), "_", it->second++));
      is_renamed = true;
    }
    for (size_t t = 0; t < node.tops.size(); ++t) {
      const std::string& name = graph.values[node.tops[t]].name;
      if (static_cast<int>(t) >= layer.param.top_size()) layer.param.add_top(name);
      layer.in_place.push_back(!is_renamed && static_cast<int>(t) < layer.param.bottom_size() &&
                               layer.param.bottom(static_cast<int>(t)) == name);
      if (is_split(graph.values[node.tops[t]])) layer.param.clear_loss_weight();
    }
    layers.push_back(std::move(layer));
    for (int v : node.tops) {
      if (is_split(graph.values[v])) layers.push_back(make_split(graph, v));
    }
  }
  return layers;
}

}  // namespace crema
