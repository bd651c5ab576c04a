// Which layers may, which runs do; then types from first node to last, converts where a reader
// needs another one.
#include "net/precision.h"

#include <glog/logging.h>

#include <algorithm>
#include <numeric>

#include "net/convert_nodes.h"

namespace crema {
namespace {

const char* name_of(DType type) { return type == DType::bf16 ? "bf16" : "f16"; }

/// What fields ask for: FLOAT16 in either direction is low, for a blob and its gradient have one
/// type.
enum class Asked : uint8_t { nothing, f32, low };

Asked asked_by(bool has_forward, Type forward, bool has_backward, Type backward) {
  if ((has_forward && forward == FLOAT16) || (has_backward && backward == FLOAT16)) {
    return Asked::low;
  }
  return has_forward || has_backward ? Asked::f32 : Asked::nothing;
}

Asked asked_by(const LayerParameter& layer) {
  return asked_by(layer.has_forward_type(), layer.forward_type(), layer.has_backward_type(),
                  layer.backward_type());
}

Asked asked_by(const NetParameter& net) {
  return asked_by(net.has_default_forward_type(), net.default_forward_type(),
                  net.has_default_backward_type(), net.default_backward_type());
}

/// The type that is asked for; f32 where none is, or none can be had.
DType type_of(const Graph& graph, const Ops& ops, const NetParameter& net,
              const PrecisionWish& wish) {
  if (wish.type) {
    const auto reason = ops.why_not_precision(*wish.type);
    require(!reason, "precision ", name_of(*wish.type), ": ", reason.value_or(""));
    return *wish.type;
  }
  const bool by_layer = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return asked_by(node.param) == Asked::low;
  });
  if (!by_layer && asked_by(net) != Asked::low) return DType::f32;
  const auto reason = ops.why_not_precision(DType::f16);
  if (!reason) return DType::f16;
  LOG(WARNING) << wish.file << ": FLOAT16 is asked for, f32 is used: " << *reason;
  return DType::f32;
}

class Lowering {
 public:
  Lowering(Graph& graph, const Ops& ops, DType type, const PrecisionWish& wish)
      : graph_(graph), ops_(ops), type_(type), train_(wish.train) {}

  /// low_by_default: layers that do not say are lowered.
  void choose(bool low_by_default) {
    find_values_of_f32();
    may_.resize(graph_.nodes.size());
    for (size_t n = 0; n < graph_.nodes.size(); ++n) may_[n] = may(graph_.nodes[n], low_by_default);
    join_runs();
    is_low_.assign(graph_.nodes.size(), 0);
    std::vector<uint8_t> gains(graph_.nodes.size(), 0);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (may_[n] && graph_.nodes[n].traits.low == Low::gains) gains[find(static_cast<int>(n))] = 1;
    }
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      is_low_[n] = may_[n] && gains[find(static_cast<int>(n))];
    }
  }

  bool is_any_low() const {
    return std::any_of(is_low_.begin(), is_low_.end(), [](uint8_t low) { return low != 0; });
  }

  void apply() {
    ConvertNodes converts(graph_);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (is_transparent(node)) {
        pass_through(node);
        continue;
      }
      const DType type = is_low_[n] ? type_ : DType::f32;
      for (size_t b = 0; b < graph_.nodes[n].bottoms.size(); ++b) {
        const Layout layout = graph_.values[graph_.nodes[n].bottoms[b]].layout;
        if (converts.adapt(static_cast<int>(n), b, layout, type) == 0) continue;
        is_low_.insert(is_low_.begin() + static_cast<std::ptrdiff_t>(n), 0);
        ++n;
      }
      for (int v : graph_.nodes[n].tops) graph_.values[v].dtype = type;
    }
  }

 private:
  /// Aliases have their bottom's type; converts write what their readers want.
  static bool is_transparent(const Node& node) {
    return !node.is_absorbed && (node.is_convert || node.traits.tops_alias_bottom);
  }

  void find_values_of_f32() {
    must_be_f32_.assign(graph_.values.size(), 0);
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      if (graph_.values[v].loss_weight != 0) must_be_f32_[graph_.root(static_cast<int>(v))] = 1;
    }
  }

  bool may(const Node& node, bool low_by_default) const {
    if (node.is_absorbed || is_transparent(node) || node.traits.low == Low::none) return false;
    const Asked asked = asked_by(node.param);
    if (asked == Asked::f32 || (asked == Asked::nothing && !low_by_default)) return false;
    const auto is_f32 = [&](int v) { return must_be_f32_[graph_.root(v)] != 0; };
    if (std::any_of(node.tops.begin(), node.tops.end(), is_f32)) return false;
    const auto lowered = [&](const std::vector<int>& values) {
      std::vector<TensorDesc> descs;
      for (int v : values) {
        descs.push_back(graph_.values[v].desc());
        descs.back().dtype = type_;
      }
      return descs;
    };
    const std::vector<TensorDesc> bottom = lowered(node.bottoms), top = lowered(node.tops);
    return node.layer->takes_low(ops_, {.bottom = bottom,
                                        .top = top,
                                        .need_dx = node.propagates,
                                        .need_dw = {},
                                        .train = train_ && node.runs_backward});
  }

  void join_runs() {
    parent_.resize(graph_.nodes.size());
    std::iota(parent_.begin(), parent_.end(), 0);
    const auto joins = [&](int n) { return may_[n] || is_transparent(graph_.nodes[n]); };
    for (const Value& value : graph_.values) {
      int first = value.producer >= 0 && joins(value.producer) ? value.producer : -1;
      for (int user : value.users) {
        if (!joins(user)) continue;
        if (first >= 0) parent_[find(user)] = find(first);
        first = user;
      }
    }
  }

  int find(int node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }

  struct Readers {
    bool any_low = false, any_f32 = false;
  };
  /// Who reads v, through aliases and converts.
  void read(int v, Readers& readers) const {
    const Value& value = graph_.values[v];
    if (must_be_f32_at(v) || value.kept) readers.any_f32 = true;
    for (int user : value.users) {
      const Node& node = graph_.nodes[user];
      if (!is_transparent(node)) {
        (is_low_[user] ? readers.any_low : readers.any_f32) = true;
        continue;
      }
      for (int top : node.tops) read(top, readers);
    }
  }
  bool must_be_f32_at(int v) const {
    const auto at = static_cast<size_t>(graph_.root(v));
    return at < must_be_f32_.size() && must_be_f32_[at];
  }

  void pass_through(const Node& node) {
    const DType from = graph_.values[node.bottoms[0]].dtype;
    for (int v : node.tops) {
      Value& top = graph_.values[v];
      top.dtype = from;
      if (node.traits.tops_alias_bottom) continue;
      Readers readers;
      read(v, readers);
      const bool is_low = readers.any_low && (crema::is_low(from) || !readers.any_f32);
      top.dtype = is_low && !must_be_f32_at(v) ? type_ : DType::f32;
    }
  }

  Graph& graph_;
  const Ops& ops_;
  DType type_;
  bool train_;
  std::vector<uint8_t> may_, is_low_, must_be_f32_;  // per node, node, root
  std::vector<int> parent_;
};

}  // namespace

DType lower_precision(Graph& graph, const Ops& ops, const NetParameter& net,
                      const PrecisionWish& wish) {
  const DType type = type_of(graph, ops, net, wish);
  if (!is_low(type)) return DType::f32;
  Lowering lowering(graph, ops, type, wish);
  lowering.choose(wish.type.has_value() || asked_by(net) == Asked::low);
  if (!lowering.is_any_low()) return DType::f32;
  lowering.apply();
  return type;
}

}  // namespace crema
