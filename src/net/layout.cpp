// Layers with any_layout that share a blob form a run; a run is nhwc when most opinions in it say
// so.
#include "net/layout.h"

#include <numeric>

#include "net/convert_nodes.h"

namespace crema {
namespace {

bool has_channels(const Shape& shape) { return shape.axes() >= 3; }

class Runs {
 public:
  explicit Runs(const Graph& graph) : parent_(graph.nodes.size()), votes_(graph.nodes.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (const Value& value : graph.values) {
      if (value.producer < 0 || !has_channels(value.shape)) continue;
      int first = graph.nodes[value.producer].traits.any_layout ? value.producer : -1;
      for (int user : value.users) {
        if (!graph.nodes[user].traits.any_layout) continue;
        if (first < 0) {
          first = user;
        } else {
          parent_[find(user)] = find(first);
        }
      }
    }
  }
  int find(int node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  void vote(int node, Layout layout) { votes_[find(node)] += layout == Layout::nhwc ? 1 : -1; }
  Layout layout(int node) { return votes_[find(node)] > 0 ? Layout::nhwc : Layout::nchw; }

 private:
  std::vector<int> parent_, votes_;
};

Shapes shapes_of(const Graph& graph, const std::vector<int>& values) {
  Shapes shapes;
  for (int v : values) shapes.push_back(graph.values[v].shape);
  return shapes;
}

/// The layout each node works in.
std::vector<Layout> choose(const Graph& graph, const Ops& ops) {
  Runs runs(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (!node.traits.any_layout) continue;
    const auto preferred = node.layer->preferred_layout(ops, shapes_of(graph, node.bottoms),
                                                        shapes_of(graph, node.tops));
    if (preferred) runs.vote(static_cast<int>(n), *preferred);
  }
  std::vector<Layout> layouts;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    layouts.push_back(graph.nodes[n].traits.any_layout ? runs.layout(static_cast<int>(n))
                                                       : Layout::nchw);
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const auto wants_nhwc = [&](int v) {
      const std::vector<int>& users = graph.values[v].users;
      return has_channels(graph.values[v].shape) && !users.empty() &&
             std::all_of(users.begin(), users.end(), [&](int user) {
               return layouts[static_cast<size_t>(user)] == Layout::nhwc;
             });
    };
    if (!node.bottoms.empty() || !node.layer->fills_any_layout(ops)) continue;
    if (std::any_of(node.tops.begin(), node.tops.end(), wants_nhwc)) layouts[n] = Layout::nhwc;
  }
  return layouts;
}

}  // namespace

void lay_out(Graph& graph, const Ops& ops, bool force_nchw) {
  if (force_nchw) return;
  std::vector<Layout> layouts = choose(graph, ops);
  ConvertNodes converts(graph);
  size_t place = 0;
  for (Layout layout : layouts) {
    for (size_t b = 0; b < graph.nodes[place].bottoms.size(); ++b) {
      const Value& bottom = graph.values[graph.nodes[place].bottoms[b]];
      if (!has_channels(bottom.shape)) continue;
      place +=
          static_cast<size_t>(converts.adapt(static_cast<int>(place), b, layout, bottom.dtype));
    }
    for (int v : graph.nodes[place].tops) {
      if (has_channels(graph.values[v].shape)) graph.values[v].layout = layout;
    }
    ++place;
  }
}

}  // namespace crema
