// Names resolve in file order. In place means a new version of the name; the memory planner decides
// what is overwritten.
#include "net/wire.h"

#include <algorithm>
#include <map>

#include "net/gradient_flow.h"
#include "net/share.h"

namespace crema {
namespace {

std::string plural(int n, const char* word) { return str(n, " ", word, n == 1 ? "" : "s"); }

void check_count(int count, int low, int high, const char* word) {
  if (count >= low && (high < 0 || count <= high)) return;
  if (low == high) fail("needs exactly ", plural(low, word), ", got ", count);
  if (high < 0) fail("needs at least ", plural(low, word), ", got ", count);
  fail("takes ", low, " to ", plural(high, word), ", got ", count);
}

class Wirer {
 public:
  Wirer(const NetParameter& net, const WireOptions& options, ErrorList& errors)
      : net_(net), options_(options), errors_(errors) {}

  Graph wire() {
    graph_.name = net_.name();
    graph_.state = net_.state();
    for (const LayerParameter& layer : net_.layer()) add_layer(layer);
    share_params(graph_, options_.file, errors_);
    check_names();
    return std::move(graph_);
  }

 private:
  void add_layer(const LayerParameter& param) {
    const int index = static_cast<int>(graph_.nodes.size());
    graph_.nodes.emplace_back();
    Node& node = graph_.nodes.back();
    node.param = param;
    bool known = attach_bottoms(node, index);
    Shapes tops;
    try {
      LayerContext context = options_.context;
      context.phase = param.has_phase() ? param.phase() : graph_.state.phase();
      context.index = index;
      node.layer = make_layer(param, context);
      node.is_input = param.type() == "Input";
      check_edges(node);
      if (known) tops = infer(node);
    } catch (const Error& error) {
      errors_.add(error.at(place_of(param, options_.file)));
      known = false;
    }
    attach_tops(node, index, tops, known);
  }

  bool attach_bottoms(Node& node, int index) {
    bool known = true;
    for (const std::string& name : node.param.bottom()) {
      const auto it = current_.find(name);
      if (it == current_.end()) {
        errors_.add(Error(str("unknown bottom \"", name, "\"", did_you_mean(name, blob_names()),
                              ": no layer before this one makes it"))
                        .at(place_of(node.param, options_.file)));
        known = false;
        continue;
      }
      node.bottoms.push_back(it->second);
      graph_.values[it->second].users.push_back(index);
      known = known && graph_.values[it->second].known;
    }
    return known && node.bottoms.size() == static_cast<size_t>(node.param.bottom_size());
  }

  std::vector<std::string> blob_names() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : current_) names.push_back(name);
    return names;
  }

  void check_edges(const Node& node) {
    const Arity arity = node.layer->arity();
    const LayerParameter& param = node.param;
    check_count(param.bottom_size(), arity.min_bottoms, arity.max_bottoms, "bottom");
    const bool makes_up_tops = node.layer->is_loss() && param.top_size() < arity.min_tops;
    if (!makes_up_tops) check_count(param.top_size(), arity.min_tops, arity.max_tops, "top");
    const int tops = std::max(param.top_size(), makes_up_tops ? arity.min_tops : 0);
    require(param.loss_weight_size() == 0 || param.loss_weight_size() == tops,
            "loss_weight: needs one value per top (", tops, "), got ", param.loss_weight_size());
    require(param.propagate_down_size() == 0 || param.propagate_down_size() == param.bottom_size(),
            "propagate_down: needs one value per bottom (", param.bottom_size(), "), got ",
            param.propagate_down_size());
  }

  Shapes infer(Node& node) {
    Shapes bottoms;
    for (int v : node.bottoms) bottoms.push_back(graph_.values[v].shape);
    Shapes tops = node.layer->infer(bottoms);
    for (const Shape& shape : tops) {
      double count = 1;
      for (int64_t dim : shape) {
        require(dim >= 0, "a top would have the shape ", shape);
        count *= static_cast<double>(dim);
      }
      require(count <= 2147483647.0, "a top would have the shape ", shape,
              ", more than the 2147483647 values that a ", "blob may hold");
    }
    require(node.param.param_size() <= static_cast<int>(node.layer->params().size()), "param: has ",
            node.param.param_size(), " specs, but the layer has ",
            plural(node.layer->params().size(), "parameter"));
    node.traits = node.layer->traits();
    return tops;
  }

  void attach_tops(Node& node, int index, const Shapes& shapes, bool known) {
    const bool is_loss = node.layer != nullptr && node.layer->is_loss();
    int count = node.param.top_size();
    if (is_loss) count = std::max(count, node.layer->arity().min_tops);
    for (int i = 0; i < count; ++i) {
      Value value;
      value.name = i < node.param.top_size() ? node.param.top(i) : "(automatic)";
      value.known = known && i < static_cast<int>(shapes.size());
      if (value.known) value.shape = shapes[i];
      value.producer = index;
      value.producer_top = i;
      value.loss_weight = i < node.param.loss_weight_size() ? node.param.loss_weight(i)
                                                            : (is_loss && i == 0 ? 1 : 0);
      if (node.traits.tops_alias_bottom && !node.bottoms.empty() && known)
        value.alias_of = node.bottoms[0];
      place_name(node, value, i);
      node.tops.push_back(static_cast<int>(graph_.values.size()));
      graph_.values.push_back(std::move(value));
    }
  }

  /// A top that is not written has no name, so nobody can ask for it and it is no output.
  void place_name(const Node& node, Value& value, int top) {
    if (top >= node.param.top_size()) {
      value.last_version = false;
      return;
    }
    const auto it = current_.find(value.name);
    if (it != current_.end()) {
      Value& old = graph_.values[it->second];
      const bool in_place = top < node.param.bottom_size() && node.param.bottom(top) == value.name;
      if (!in_place) {
        const LayerParameter& other = graph_.nodes[old.producer].param;
        errors_.add(Error(str("top \"", value.name, "\" is already made by layer \"", other.name(),
                              "\" (", other.type(), "): give one of them another name"))
                        .at(place_of(node.param, options_.file)));
      }
      old.last_version = false;
    }
    current_[value.name] = static_cast<int>(graph_.values.size());
  }

  void check_names() {
    std::map<std::string, const Node*> owners;
    for (const Node& node : graph_.nodes) {
      if (!node.layer || node.layer->params().empty()) continue;
      const auto [it, fresh] = owners.emplace(node.param.name(), &node);
      if (!fresh) {
        errors_.add(Error(str("another layer with parameters has the same name (",
                              place_of(it->second->param, options_.file),
                              "): weights are stored by layer name, so each needs its own"))
                        .at(place_of(node.param, options_.file)));
      }
    }
  }

  const NetParameter& net_;
  const WireOptions& options_;
  ErrorList& errors_;
  Graph graph_;
  std::map<std::string, int> current_;  // blob name -> its latest version
};

}  // namespace

Graph wire(const NetParameter& net, const WireOptions& options, ErrorList& errors) {
  Graph graph = Wirer(net, options, errors).wire();
  if (errors.empty()) flow_gradients(graph, net.force_backward(), options.train);
  return graph;
}

}  // namespace crema
