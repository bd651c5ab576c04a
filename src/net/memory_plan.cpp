// Lifetimes from the order of steps and from what each layer's backward reads; then first fit by
// size.
#include "net/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace crema {
namespace {

constexpr size_t kAlignment = 64;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

size_t bytes_of(const Value& value) {
  return static_cast<size_t>(value.shape.count()) * sizeof(float);
}

class Planner {
 public:
  Planner(const Graph& graph, const std::vector<Needs>& needs, const MemoryOptions& options)
      : graph_(graph),
        needs_(needs),
        options_(options),
        nodes_(static_cast<int>(graph.nodes.size())) {}

  MemoryPlan plan() {
    end_ = options_.train ? 2 * nodes_ - 1 : nodes_ - 1;
    plan_.data.assign(graph_.values.size(), -1);
    plan_.gradient.assign(graph_.values.size(), -1);
    plan_.saved.assign(graph_.nodes.size(), -1);
    plan_.temporary.resize(graph_.nodes.size());
    plan_.how.resize(graph_.nodes.size());
    lay_data();
    if (options_.train) lay_gradients();
    lay_workspaces();
    for (const Value& value : graph_.values) {
      if (value.producer >= 0) plan_.unplanned_bytes += bytes_of(value) * (options_.train ? 2 : 1);
    }
    plan_.arena_bytes = place_buffers(plan_.buffers);
    return std::move(plan_);
  }

 private:
  int backward_time(int node) const { return 2 * nodes_ - 1 - node; }

  int new_buffer(size_t bytes, int first, int last) {
    plan_.buffers.push_back({bytes, first, last});
    return static_cast<int>(plan_.buffers.size()) - 1;
  }

  /// The last step that reads the data of value v itself.
  int last_read(int v) const {
    const Value& value = graph_.values[v];
    int last = value.producer;
    auto reads_back = [&](int node, uint64_t mask, size_t place) {
      return options_.train && graph_.nodes[node].runs_backward &&
             !graph_.nodes[node].traits.tops_alias_bottom &&
             (mask >> std::min<size_t>(place, 63) & 1);
    };
    for (int user : value.users) {
      last = std::max(last, user);
      const Node& node = graph_.nodes[user];
      for (size_t b = 0; b < node.bottoms.size(); ++b) {
        if (node.bottoms[b] == v && reads_back(user, node.traits.backward_reads_bottoms, b)) {
          last = std::max(last, backward_time(user));
        }
      }
    }
    const Node& producer = graph_.nodes[value.producer];
    if (reads_back(value.producer, producer.traits.backward_reads_tops,
                   static_cast<size_t>(value.producer_top))) {
      last = std::max(last, backward_time(value.producer));
    }
    if (value.kept || stays_whole(producer)) last = end_;
    return last;
  }

  bool stays_whole(const Node& producer) const {
    return options_.keep_sources && producer.bottoms.empty();
  }

  bool is_alive(int v) const { return graph_.values[v].producer >= 0; }

  /// Values in order of production; aliases lengthen their root's life; a top may take over its
  /// bottom's buffer.
  void lay_data() {
    std::vector<int> last(graph_.values.size(), -1);
    std::vector<uint8_t> pinned(graph_.values.size(), 0);
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      if (!is_alive(static_cast<int>(v))) continue;
      const int root = graph_.root(static_cast<int>(v));
      last[root] = std::max(last[root], last_read(static_cast<int>(v)));
      const Node& producer = graph_.nodes[graph_.values[v].producer];
      pinned[root] |= graph_.values[v].kept || producer.is_input || stays_whole(producer);
    }
    for (int n = 0; n < nodes_; ++n) {
      const Node& node = graph_.nodes[n];
      for (size_t t = 0; t < node.tops.size(); ++t) {
        const int v = node.tops[t];
        if (node.is_input || graph_.root(v) != v) continue;
        if (t == 0 && can_take_over(node, n, last, pinned)) {
          const int buffer = plan_.data[graph_.root(node.bottoms[0])];
          plan_.data[v] = buffer;
          plan_.buffers[buffer].last = std::max(plan_.buffers[buffer].last, last[v]);
        } else {
          plan_.data[v] = new_buffer(bytes_of(graph_.values[v]), n, last[v]);
        }
      }
    }
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      if (is_alive(static_cast<int>(v)))
        plan_.data[v] = plan_.data[graph_.root(static_cast<int>(v))];
    }
  }

  bool can_take_over(const Node& node, int n, const std::vector<int>& last,
                     const std::vector<uint8_t>& pinned) const {
    if (!node.traits.can_overwrite_bottom || node.bottoms.empty()) return false;
    const int bottom = graph_.root(node.bottoms[0]);
    if (pinned[bottom] || last[bottom] > n || plan_.data[bottom] < 0) return false;
    for (size_t b = 1; b < node.bottoms.size(); ++b) {
      if (graph_.root(node.bottoms[b]) == bottom) return false;
    }
    return bytes_of(graph_.values[node.tops[0]]) == bytes_of(graph_.values[bottom]) &&
           graph_.values[node.tops[0]].layout == graph_.values[node.bottoms[0]].layout;
  }

  /// In backward order: the first writer of a gradient overwrites, later ones add; its producer's
  /// backward is the last to read it.
  void lay_gradients() {
    std::vector<uint8_t> written(graph_.values.size(), 0);
    std::vector<uint8_t> kept(graph_.values.size(), 0);
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      const Value& value = graph_.values[v];
      const int root = gradient_root(graph_, static_cast<int>(v));
      kept[root] |= value.kept;
      if (value.has_gradient && value.loss_weight != 0 && !written[root]) {
        written[root] = 1;
        plan_.gradient[root] = new_buffer(bytes_of(value), nodes_, nodes_);
      }
    }
    for (int n = nodes_ - 1; n >= 0; --n) {
      const Node& node = graph_.nodes[n];
      plan_.temporary[n].assign(node.bottoms.size(), -1);
      plan_.how[n].assign(node.bottoms.size(), Write::overwrite);
      for (int v : node.tops) touch(gradient_root(graph_, v), backward_time(n), kept);
      if (!node.runs_backward) continue;
      for (size_t b = 0; b < node.bottoms.size(); ++b) lay_gradient(n, b, written, kept);
    }
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      if (graph_.values[v].has_gradient)
        plan_.gradient[v] = plan_.gradient[gradient_root(graph_, static_cast<int>(v))];
    }
  }

  void lay_gradient(int n, size_t b, std::vector<uint8_t>& written,
                    const std::vector<uint8_t>& kept) {
    const Node& node = graph_.nodes[n];
    if (!node.propagates[b]) return;
    const int root = gradient_root(graph_, node.bottoms[b]);
    const bool aliased = node.traits.tops_alias_bottom && b == 0;
    if (aliased) return;  // the tops' users already wrote into the same memory
    const int time = backward_time(n);
    if (!written[root]) {
      written[root] = 1;
      const int top = node.tops.empty() ? -1 : gradient_root(graph_, node.tops[0]);
      if (b == 0 && can_take_over_gradient(node, top, root, kept)) {
        plan_.gradient[root] = plan_.gradient[top];
      } else {
        plan_.gradient[root] = new_buffer(bytes_of(graph_.values[root]), time, time);
      }
    } else {
      plan_.how[n][b] = Write::accumulate;
      if (!node.traits.accumulates) {
        plan_.temporary[n][b] = new_buffer(bytes_of(graph_.values[root]), time, time);
      }
    }
    touch(root, time, kept);
  }

  bool can_take_over_gradient(const Node& node, int top, int bottom,
                              const std::vector<uint8_t>& kept) const {
    return node.traits.can_overwrite_bottom && node.propagates.size() == 1 && top >= 0 &&
           top != bottom && plan_.gradient[top] >= 0 && !kept[top] && !kept[bottom] &&
           graph_.values[node.tops[0]].loss_weight == 0 &&
           bytes_of(graph_.values[top]) == bytes_of(graph_.values[bottom]) &&
           graph_.values[top].layout == graph_.values[bottom].layout;
  }

  void touch(int root, int time, const std::vector<uint8_t>& kept) {
    if (plan_.gradient[root] < 0) return;
    PlannedBuffer& buffer = plan_.buffers[plan_.gradient[root]];
    buffer.last = std::max(buffer.last, kept[root] ? end_ : time);
  }

  void lay_workspaces() {
    size_t scratch = 0;
    for (int n = 0; n < nodes_; ++n) {
      scratch = std::max(scratch, needs_[n].scratch);
      if (needs_[n].saved == 0) continue;
      const bool until_backward = options_.train && graph_.nodes[n].runs_backward;
      plan_.saved[n] = new_buffer(needs_[n].saved, n, until_backward ? backward_time(n) : n);
    }
    if (scratch > 0) plan_.scratch = new_buffer(scratch, 0, end_);
  }

  const Graph& graph_;
  const std::vector<Needs>& needs_;
  const MemoryOptions& options_;
  int nodes_, end_ = 0;
  MemoryPlan plan_;
};

}  // namespace

int gradient_root(const Graph& graph, int v) {
  for (;;) {
    const Value& value = graph.values[v];
    if (value.alias_of < 0) return v;
    const Node& producer = graph.nodes[value.producer];
    if (!producer.runs_backward || producer.propagates.empty() || !producer.propagates[0]) return v;
    v = value.alias_of;
  }
}

size_t place_buffers(std::vector<PlannedBuffer>& buffers) {
  std::vector<int> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return buffers[a].bytes > buffers[b].bytes; });
  std::vector<int> placed;  // by offset
  size_t total = 0;
  for (int i : order) {
    PlannedBuffer& buffer = buffers[i];
    size_t offset = 0;
    for (int j : placed) {
      const PlannedBuffer& other = buffers[j];
      if (other.last < buffer.first || buffer.last < other.first) continue;
      if (offset + aligned(buffer.bytes) <= other.offset) break;
      offset = std::max(offset, other.offset + aligned(other.bytes));
    }
    buffer.offset = offset;
    total = std::max(total, offset + aligned(buffer.bytes));
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), i,
                         [&](int a, int b) { return buffers[a].offset < buffers[b].offset; }),
        i);
  }
  return total;
}

MemoryPlan plan_memory(const Graph& graph, const std::vector<Needs>& needs,
                       const MemoryOptions& options) {
  return Planner(graph, needs, options).plan();
}

}  // namespace crema
