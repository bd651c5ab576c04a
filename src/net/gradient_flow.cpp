// Forward: who has something that learns before it. Backward: whom a loss reaches.
#include "net/gradient_flow.h"

#include <algorithm>

namespace crema {
namespace {

/// A gradient is wanted for a bottom when something before it learns; propagate_down decides where
/// it is written. force_backward adds the bottoms for which layers allow it, and only those: what
/// it wants before a label (a Slice that cuts labels off an input) does not make the label learn.
void mark_wants(Graph& graph, bool force_backward) {
  std::vector<uint8_t> learns(graph.values.size(), 0);  // wants a gradient without force_backward
  for (Node& node : graph.nodes) {
    bool node_learns = false, wants = false;
    node.propagates.assign(node.bottoms.size(), 0);
    for (size_t i = 0; i < node.bottoms.size(); ++i) {
      const int v = node.bottoms[i];
      bool need = learns[v] != 0;
      if (node.param.propagate_down_size() > 0)
        need = node.param.propagate_down(static_cast<int>(i));
      if (need) learns[v] = 1;
      node_learns = node_learns || need;
      if (force_backward) need = need || node.layer->allow_force_backward(static_cast<int>(i));
      node.propagates[i] = need && node.traits.has_backward;
      if (need) graph.values[v].wants_gradient = true;
      wants = wants || need;
    }
    for (int p : node.params) {
      ParamSlot& slot = graph.params[p];
      slot.needs_gradient = slot.learnable && (slot.lr_mult != 0 || force_backward);
      node_learns = node_learns || (slot.learnable && slot.lr_mult != 0);
      wants = wants || slot.needs_gradient;
    }
    for (int v : node.tops) {
      learns[v] = node_learns && node.traits.has_backward;
      graph.values[v].wants_gradient = wants && node.traits.has_backward;
    }
  }
}

/// From the end: a node runs backward when one of its tops has a gradient and something wants what
/// it would write.
void mark_reached(Graph& graph) {
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    Node& node = graph.nodes[n];
    bool reached = false;
    for (int v : node.tops) {
      Value& value = graph.values[v];
      if (value.loss_weight != 0 && value.wants_gradient) value.has_gradient = true;
      reached = reached || value.has_gradient;
    }
    const bool writes_bottoms =
        std::any_of(node.propagates.begin(), node.propagates.end(), [](uint8_t p) { return p; });
    const bool writes_params = std::any_of(node.params.begin(), node.params.end(),
                                           [&](int p) { return graph.params[p].needs_gradient; });
    node.runs_backward = reached && node.traits.has_backward && (writes_bottoms || writes_params);
    for (size_t i = 0; i < node.bottoms.size(); ++i) {
      if (!node.runs_backward) node.propagates[i] = 0;
      if (node.propagates[i]) graph.values[node.bottoms[i]].has_gradient = true;
    }
  }
}

}  // namespace

void flow_gradients(Graph& graph, bool force_backward, bool train) {
  if (!train) {
    for (Node& node : graph.nodes) node.propagates.assign(node.bottoms.size(), 0);
    return;
  }
  mark_wants(graph, force_backward);
  mark_reached(graph);
}

}  // namespace crema
