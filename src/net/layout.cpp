// Layers with any_layout that share a blob form a run; a run is nhwc when most opinions in it say
// so.
#include "net/layout.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace crema {
namespace {

/// A step of ours between two layouts of one blob. Where both orders are the same bytes (one
/// channel, one pixel) it only renames.
class ConvertLayer : public Layer {
 public:
  ConvertLayer(const LayerParameter& param, bool same_bytes)
      : Layer(param, {}), same_bytes_(same_bytes) {}
  Shapes infer(const Shapes& bottom) override { return bottom; }
  LayerTraits traits() const override {
    LayerTraits traits;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    traits.tops_alias_bottom = same_bytes_;
    return traits;
  }
  void forward(Ops& ops, CTensors bottom, Tensors top) override { ops.convert(bottom[0], top[0]); }
  void backward(Ops& ops, const BackwardArgs& args) override {
    if (args.dbottom[0] && args.dtop[0]) ops.convert(args.dtop[0], args.dbottom[0].t);
  }

 private:
  bool same_bytes_;
};

bool has_channels(const Shape& shape) { return shape.axes() >= 3; }

bool same_bytes(const Shape& shape) { return shape[1] == 1 || shape.count(2) == 1; }

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
  return layouts;
}

/// Makes the node and the value that hold `from` in another layout.
std::pair<Node, Value> make_convert(const Graph& graph, int from, Layout layout) {
  const Value& source = graph.values[from];
  Node node;
  node.param.set_name(source.name + (layout == Layout::nhwc ? " to nhwc" : " to nchw"));
  node.param.set_type("convert");
  node.layer = std::make_unique<ConvertLayer>(node.param, same_bytes(source.shape));
  node.traits = node.layer->traits();
  node.is_convert = true;
  Value value;
  value.name = source.name;
  value.shape = source.shape;
  value.layout = layout;
  value.last_version = false;
  value.wants_gradient = source.wants_gradient;
  if (node.traits.tops_alias_bottom) value.alias_of = from;
  return {std::move(node), std::move(value)};
}

class Converter {
 public:
  explicit Converter(Graph& graph) : graph_(graph) {}

  /// Gives node `n` its bottom `b` in `layout`; returns how many nodes were put in before it.
  int adapt(int n, size_t b, Layout layout) {
    const int from = graph_.nodes[n].bottoms[b];
    if (!has_channels(graph_.values[from].shape) || graph_.values[from].layout == layout) return 0;
    const auto key = std::make_pair(from, layout);
    const auto it = made_.find(key);
    const bool fresh = it == made_.end();
    if (fresh) insert(n, from, layout);
    n += fresh;
    const int to = made_[key];
    move_user(n, b, from, to);
    return fresh;
  }

 private:
  void insert(int at, int from, Layout layout) {
    auto [node, value] = make_convert(graph_, from, layout);
    const int to = static_cast<int>(graph_.values.size());
    node.bottoms = {from};
    node.tops = {to};
    node.propagates = {0};
    graph_.values.push_back(std::move(value));
    graph_.insert_node(at, std::move(node));
    graph_.values[to].producer = at;
    graph_.values[from].users.push_back(at);
    made_[{from, layout}] = to;
  }

  void move_user(int n, size_t b, int from, int to) {
    std::vector<int>& users = graph_.values[from].users;
    users.erase(std::find(users.begin(), users.end(), n));
    graph_.values[to].users.push_back(n);
    Node& node = graph_.nodes[n];
    node.bottoms[b] = to;
    if (node.propagates[b]) {
      Node& convert = graph_.nodes[graph_.values[to].producer];
      convert.runs_backward = true;
      convert.propagates[0] = 1;
      graph_.values[to].has_gradient = true;
    }
    // A layer whose top is its bottom's memory must follow the value that it now reads.
    if (b == 0 && node.traits.tops_alias_bottom) {
      for (int top : node.tops) graph_.values[top].alias_of = to;
    }
  }

  Graph& graph_;
  std::map<std::pair<int, Layout>, int> made_;
};

}  // namespace

void lay_out(Graph& graph, const Ops& ops, bool force_nchw) {
  if (force_nchw) return;
  std::vector<Layout> layouts = choose(graph, ops);
  Converter converter(graph);
  size_t place = 0;
  for (Layout layout : layouts) {
    for (size_t b = 0; b < graph.nodes[place].bottoms.size(); ++b) {
      place += static_cast<size_t>(converter.adapt(static_cast<int>(place), b, layout));
    }
    for (int v : graph.nodes[place].tops) {
      if (has_channels(graph.values[v].shape)) graph.values[v].layout = layout;
    }
    ++place;
  }
}

}  // namespace crema
