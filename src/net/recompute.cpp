// Candidates come from two numbers: into how many segments the net is cut (what crosses a cut is
// kept), and how much arithmetic per byte a layer may cost to be dropped. Each is planned in full,
// and the plans decide.
#include "net/recompute.h"

#include <algorithm>

namespace crema {
namespace {

/// Operations that take as long as moving one byte, on the machines we know.
constexpr double kOperationsPerByte = 10;
constexpr double kLargestShare = 0.25;  // of the step, without a limit

double bytes_of(const Graph& graph, const std::vector<int>& values) {
  double bytes = 0;
  for (int v : values) bytes += static_cast<double>(graph.values[v].desc().bytes());
  return bytes;
}

/// What one forward of a node costs, in operations. The first parameter of at least two axes is
/// used once for each element of a top's row.
double cost_of(const Graph& graph, const Node& node) {
  double operations = 0;
  if (!node.params.empty() && !node.tops.empty()) {
    const Shape& weights = graph.params[node.params[0]].shape;
    if (weights.axes() >= 2) {
      operations = 2.0 * static_cast<double>(weights.count()) *
                   static_cast<double>(graph.values[node.tops[0]].shape.count()) /
                   static_cast<double>(weights[0]);
    }
  }
  return operations +
         kOperationsPerByte * (bytes_of(graph, node.bottoms) + bytes_of(graph, node.tops));
}

class Scheduler {
 public:
  Scheduler(const Graph& graph, Recompute& out)
      : graph_(graph), out_(out), is_there_(graph.nodes.size(), 0) {}

  void run() {
    const int nodes = static_cast<int>(graph_.nodes.size());
    out_.before.assign(graph_.nodes.size(), {});
    for (int n = nodes - 1; n >= 0; --n) {
      for (int root : graph_.read_in_backward(n)) want(root, out_.before[n]);
    }
  }

 private:
  /// Puts the producer of a dropped root, and before it what that reads, at the end of the list.
  /// With a list of its own instead of calls: a net may be thousands of layers deep.
  void want(int root, std::vector<int>& list) {
    std::vector<int> open{graph_.values[root].producer};
    while (!open.empty()) {
      const int node = open.back();
      if (!out_.dropped[node] || is_there_[node]) {
        open.pop_back();
        continue;
      }
      const size_t before = open.size();
      for (int v : graph_.nodes[node].bottoms) {
        const int producer = graph_.values[graph_.root(v)].producer;
        if (out_.dropped[producer] && !is_there_[producer]) open.push_back(producer);
      }
      if (open.size() > before) continue;
      is_there_[node] = 1;
      list.push_back(node);
      open.pop_back();
    }
  }

  const Graph& graph_;
  Recompute& out_;
  std::vector<uint8_t> is_there_;
};

class Chooser {
 public:
  Chooser(const Graph& graph, const std::vector<Needs>& needs, const MemoryOptions& options,
          const RecomputeWish& wish)
      : graph_(graph),
        needs_(needs),
        options_(options),
        wish_(wish),
        nodes_(static_cast<int>(graph.nodes.size())) {}

  Recompute choose() {
    gather();
    std::vector<double> limits = ratio_limits();
    if (wish_.limit > 0) consider(std::vector<uint8_t>(graph_.nodes.size(), 0));
    consider(wished_alone());
    if (wish_.everywhere || wish_.limit > 0) {
      for (const int segments : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}) {
        const std::vector<uint8_t> crosses = cut(segments);
        for (const double limit : limits) consider(candidate(crosses, limit));
      }
    }
    return std::move(best_);
  }

 private:
  void gather() {
    for (int n = 0; n < nodes_; ++n) {
      const Node& node = graph_.nodes[n];
      const double cost = cost_of(graph_, node);
      cost_.push_back(cost);
      total_ += node.runs_backward ? 3 * cost : cost;
      const bool is_free = is_droppable(graph_, n) && wish_.layer_wish[n] != 0;
      droppable_.push_back(is_free);
      const double bytes = bytes_of(graph_, node.tops);
      ratio_.push_back(bytes > 0 ? cost / bytes : 0);
    }
  }

  std::vector<uint8_t> wished_alone() const {
    std::vector<uint8_t> dropped(graph_.nodes.size(), 0);
    for (int n = 0; n < nodes_; ++n) dropped[n] = droppable_[n] && wish_.layer_wish[n] == 1;
    return dropped;
  }

  /// Some values of cost per byte that split the layers into groups, the last above all.
  std::vector<double> ratio_limits() const {
    std::vector<double> sorted;
    for (int n = 0; n < nodes_; ++n) {
      if (droppable_[n]) sorted.push_back(ratio_[n]);
    }
    std::sort(sorted.begin(), sorted.end());
    std::vector<double> limits;
    constexpr size_t kGroups = 6;
    for (size_t i = 1; i <= kGroups && !sorted.empty(); ++i) {
      const double limit = sorted[(sorted.size() * i - 1) / kGroups];
      if (limits.empty() || limit > limits.back()) limits.push_back(limit);
    }
    return limits;
  }

  /// Per node, whether one of its tops crosses a cut. Cuts lie where little crosses, near equal
  /// parts of the activations.
  std::vector<uint8_t> cut(int segments) const {
    std::vector<int> last_user(graph_.values.size(), -1);
    for (int n = 0; n < nodes_; ++n) {
      for (int v : graph_.nodes[n].bottoms) last_user[graph_.root(v)] = n;
    }
    std::vector<double> crossing(graph_.nodes.size() + 1, 0), before(graph_.nodes.size() + 1, 0);
    for (int n = 0; n < nodes_; ++n) {
      double bytes = 0;
      for (int v : graph_.nodes[n].tops) {
        if (graph_.root(v) != v) continue;
        const double own = bytes_of(graph_, {v});
        bytes += own;
        for (int m = n + 1; m <= last_user[v]; ++m) crossing[m] += own;
      }
      before[n + 1] = before[n] + bytes;
    }
    std::vector<uint8_t> crosses(graph_.nodes.size(), 0);
    for (int s = 1; s < segments; ++s) {
      const double ideal = before.back() * s / segments, reach = before.back() / (2 * segments);
      int best = -1;
      for (int m = 1; m < nodes_; ++m) {
        if (before[m] < ideal - reach || before[m] > ideal + reach) continue;
        if (best < 0 || crossing[m] < crossing[best]) best = m;
      }
      if (best < 0) continue;
      for (int n = 0; n < best; ++n) {
        for (int v : graph_.nodes[n].tops) {
          if (last_user[graph_.root(v)] >= best) {
            crosses[graph_.values[graph_.root(v)].producer] = 1;
          }
        }
      }
    }
    return crosses;
  }

  std::vector<uint8_t> candidate(const std::vector<uint8_t>& crosses, double limit) const {
    std::vector<uint8_t> dropped = wished_alone();
    for (int n = 0; n < nodes_; ++n) {
      if (droppable_[n] && !crosses[n] && ratio_[n] <= limit) dropped[n] = 1;
    }
    return dropped;
  }

  void consider(std::vector<uint8_t> dropped) {
    const bool drops_any = std::find(dropped.begin(), dropped.end(), 1) != dropped.end();
    Recompute recompute;
    if (drops_any) recompute = schedule_recompute(graph_, std::move(dropped));
    double cost = 0;
    for (const std::vector<int>& list : recompute.before) {
      for (int node : list) cost += cost_[node];
    }
    MemoryOptions options = options_;
    options.recompute = recompute;
    const size_t bytes = wish_.fixed_bytes + plan_memory(graph_, needs_, options).arena_bytes;
    const bool fits = wish_.limit > 0 && bytes <= wish_.limit;
    const bool is_affordable = wish_.limit > 0 || cost <= kLargestShare * total_;
    const bool is_better = !has_best_           ? true
                           : fits != best_fits_ ? fits
                           : fits               ? cost < best_cost_
                           : is_affordable      ? bytes < best_bytes_
                                                : false;
    if (!is_better) return;
    has_best_ = true;
    best_ = std::move(recompute);
    best_fits_ = fits;
    best_cost_ = cost;
    best_bytes_ = bytes;
  }

  const Graph& graph_;
  const std::vector<Needs>& needs_;
  const MemoryOptions& options_;
  const RecomputeWish& wish_;
  int nodes_;
  std::vector<double> cost_, ratio_;
  std::vector<uint8_t> droppable_;
  double total_ = 0;
  Recompute best_;
  bool has_best_ = false, best_fits_ = false;
  double best_cost_ = 0;
  size_t best_bytes_ = 0;
};

}  // namespace

bool RecomputeWish::is_asked_for() const {
  return everywhere || limit > 0 ||
         std::find(layer_wish.begin(), layer_wish.end(), 1) != layer_wish.end();
}

bool is_droppable(const Graph& graph, int n) {
  const Node& node = graph.nodes[n];
  const LayerTraits& traits = node.traits;
  if (node.is_absorbed || node.bottoms.empty() || !traits.repeatable || traits.host_only ||
      traits.tops_alias_bottom || node.layer->shapes_after_forward()) {
    return false;
  }
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer < 0 || !(value.kept || value.loss_weight != 0)) continue;
    if (graph.values[graph.root(static_cast<int>(v))].producer == n) return false;
  }
  return true;
}

Recompute schedule_recompute(const Graph& graph, std::vector<uint8_t> dropped) {
  Recompute recompute;
  recompute.dropped = std::move(dropped);
  Scheduler(graph, recompute).run();
  return recompute;
}

Recompute choose_recompute(const Graph& graph, const std::vector<Needs>& needs,
                           const MemoryOptions& options, const RecomputeWish& wish) {
  return Chooser(graph, needs, options, wish).choose();
}

}  // namespace crema
