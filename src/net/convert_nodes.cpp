// A convert node stands before its first reader; gradients go back through it.
#include "net/convert_nodes.h"

#include <algorithm>

namespace crema {
namespace {

/// Where both orders are the same bytes (one channel, one pixel) and the type stays, it only
/// renames.
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

bool same_order(const Shape& shape) { return shape[1] == 1 || shape.count(2) == 1; }

std::string name_of(const Value& from, Layout layout, DType dtype) {
  if (from.dtype == dtype) return from.name + (layout == Layout::nhwc ? " to nhwc" : " to nchw");
  return from.name + (dtype == DType::bf16  ? " to bf16"
                      : dtype == DType::f16 ? " to f16"
                                            : " to f32");
}

/// Makes the node and the value that hold `from` in another order or type.
std::pair<Node, Value> make_convert(const Graph& graph, int from, Layout layout, DType dtype) {
  const Value& source = graph.values[from];
  const bool renames = source.dtype == dtype && same_order(source.shape);
  Node node;
  node.param.set_name(name_of(source, layout, dtype));
  node.param.set_type("convert");
  node.layer = std::make_unique<ConvertLayer>(node.param, renames);
  node.traits = node.layer->traits();
  node.is_convert = true;
  Value value;
  value.name = source.name;
  value.shape = source.shape;
  value.layout = layout;
  value.dtype = dtype;
  value.last_version = false;
  value.wants_gradient = source.wants_gradient;
  if (renames) value.alias_of = from;
  return {std::move(node), std::move(value)};
}

}  // namespace

int ConvertNodes::adapt(int n, size_t b, Layout layout, DType dtype) {
  const int from = graph_.nodes[n].bottoms[b];
  const Value& source = graph_.values[from];
  if (source.layout == layout && source.dtype == dtype) return 0;
  const auto key = std::make_tuple(from, layout, dtype);
  const auto it = made_.find(key);
  const bool fresh = it == made_.end();
  if (fresh) insert(n, from, layout, dtype);
  n += fresh;
  move_user(n, b, from, made_[key]);
  return fresh;
}

void ConvertNodes::insert(int at, int from, Layout layout, DType dtype) {
  auto [node, value] = make_convert(graph_, from, layout, dtype);
  const int to = static_cast<int>(graph_.values.size());
  node.bottoms = {from};
  node.tops = {to};
  node.propagates = {0};
  graph_.values.push_back(std::move(value));
  graph_.insert_node(at, std::move(node));
  graph_.values[to].producer = at;
  graph_.values[from].users.push_back(at);
  made_[{from, layout, dtype}] = to;
}

void ConvertNodes::move_user(int n, size_t b, int from, int to) {
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

}  // namespace crema
