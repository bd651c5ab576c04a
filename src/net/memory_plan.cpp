// Lifetimes from the order of steps and from what each layer's backward reads; then first fit by
// size.
#include "net/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "net/pieces.h"

namespace crema {
namespace {

constexpr size_t kAlignment = 64;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

size_t bytes_of(const Value& value) { return value.desc().bytes(); }

class Planner {
 public:
  Planner(const Graph& graph, const std::vector<Needs>& needs, const MemoryOptions& options)
      : graph_(graph),
        needs_(needs),
        options_(options),
        nodes_(static_cast<int>(graph.nodes.size())) {}

  MemoryPlan plan() {
    count_time();
    const size_t values = graph_.values.size();
    plan_.data.assign(values, -1);
    plan_.data_again.assign(values, -1);
    plan_.gradient.assign(values, -1);
    plan_.saved.assign(graph_.nodes.size(), -1);
    plan_.temporary.resize(graph_.nodes.size());
    plan_.how.resize(graph_.nodes.size());
    find_lives();
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
  bool recomputes() const { return !options_.recompute.is_none(); }
  int backward_time(int node) const { return backward_time_[static_cast<size_t>(node)]; }

  void count_time() {
    backward_time_.assign(graph_.nodes.size(), nodes_ - 1);
    again_time_.assign(graph_.nodes.size(), -1);
    end_ = nodes_ - 1;
    if (!options_.train) return;
    for (int n = nodes_ - 1; n >= 0; --n) {
      if (recomputes()) {
        for (int again : options_.recompute.before[n]) {
          again_time_[again] = ++end_;
          run_again_.push_back(again);
        }
      }
      backward_time_[n] = ++end_;
    }
  }

  int new_buffer(size_t bytes, int first, int last) {
    plan_.buffers.push_back({bytes, first, last});
    return static_cast<int>(plan_.buffers.size()) - 1;
  }

  int new_piece(size_t bytes, int step, int last, const Piece& piece, int whole) {
    const int buffer = new_buffer(bytes, step, last);
    plan_.buffers[buffer].inside = whole;
    plan_.buffers[buffer].within = piece.within;
    return buffer;
  }

  bool stays_whole(const Node& producer) const {
    return options_.keep_sources && producer.bottoms.empty();
  }

  bool is_alive(int v) const { return graph_.values[v].producer >= 0; }

  bool is_dropped(int root) const {
    return recomputes() && options_.recompute.dropped[graph_.values[root].producer];
  }

  /// The last step that reads each root's data: of what forward computed, and of what backward
  /// computed again.
  void find_lives() {
    last_.assign(graph_.values.size(), -1);
    last_again_.assign(graph_.values.size(), -1);
    pinned_.assign(graph_.values.size(), 0);
    const auto read_late = [&](int root, int time) {
      int& last = is_dropped(root) ? last_again_[root] : last_[root];
      last = std::max(last, time);
    };
    for (int n = 0; n < nodes_; ++n) {
      const Node& node = graph_.nodes[n];
      for (int v : node.bottoms) last_[graph_.root(v)] = std::max(last_[graph_.root(v)], n);
      if (!options_.train) continue;
      for (int root : graph_.read_in_backward(n)) read_late(root, backward_time(n));
      if (again_time_[n] < 0) continue;
      for (int v : node.bottoms) read_late(graph_.root(v), again_time_[n]);
    }
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      if (!is_alive(static_cast<int>(v))) continue;
      const Value& value = graph_.values[v];
      const Node& producer = graph_.nodes[value.producer];
      const int root = graph_.root(static_cast<int>(v));
      const bool stays = value.kept || stays_whole(producer);
      last_[root] = std::max(last_[root], stays ? end_ : value.producer);
      pinned_[root] |= stays || producer.is_input;
    }
  }

  /// Pieces live as long as what they are pieces of.
  void join_pieces() {
    piece_of_.assign(graph_.values.size(), -1);
    if (!recomputes()) pieces_ = data_pieces(graph_);
    for (size_t i = 0; i < pieces_.size(); ++i) piece_of_[pieces_[i].part] = static_cast<int>(i);
    for (const auto pass : {0, 1}) {  // first to the whole, then back to its parts
      for (const Piece& piece : pieces_) {
        const int from = pass == 0 ? piece.part : piece.whole;
        const int to = pass == 0 ? piece.whole : piece.part;
        last_[to] = std::max(last_[to], last_[from]);
        pinned_[to] |= pinned_[from];
      }
    }
    is_whole_.assign(graph_.values.size(), 0);
    for (const Piece& piece : pieces_) is_whole_[piece.whole] = 1;
  }

  /// Values in order of production; aliases lengthen their root's life; a top may take over its
  /// bottom's buffer.
  void lay_data() {
    join_pieces();
    for (int n = 0; n < nodes_; ++n) {
      const Node& node = graph_.nodes[n];
      for (size_t t = 0; t < node.tops.size(); ++t) {
        const int v = node.tops[t];
        if (node.is_input || graph_.root(v) != v) continue;
        const bool is_free = piece_of_[v] < 0 && !is_whole_[v];
        const int taken = t == 0 && is_free ? taken_over(node, n) : -1;
        plan_.data[v] = taken >= 0 ? taken : buffer_of_data(v, n);
        prolong(plan_.data[v], last_[v]);
      }
    }
    for (int n : run_again_) {
      const Node& node = graph_.nodes[n];
      const int time = again_time_[n];
      for (size_t t = 0; t < node.tops.size(); ++t) {
        const int v = node.tops[t];
        if (graph_.root(v) != v) continue;
        const int last = std::max(last_again_[v], time);
        const int taken = t == 0 ? taken_over(node, time) : -1;
        plan_.data_again[v] =
            taken >= 0 ? taken : new_buffer(bytes_of(graph_.values[v]), time, last);
        prolong(plan_.data_again[v], last);
      }
    }
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      if (!is_alive(static_cast<int>(v))) continue;
      const int root = graph_.root(static_cast<int>(v));
      plan_.data[v] = plan_.data[root];
      plan_.data_again[v] = plan_.data_again[root];
    }
  }

  void prolong(int buffer, int last) {
    plan_.buffers[buffer].last = std::max(plan_.buffers[buffer].last, last);
  }

  /// The buffer of a root that is made at step n: its own, or a piece of another's.
  int buffer_of_data(int v, int n) {
    if (plan_.data[v] >= 0) return plan_.data[v];  // made for one of its pieces
    const size_t bytes = bytes_of(graph_.values[v]);
    if (piece_of_[v] < 0) return new_buffer(bytes, n, last_[v]);
    const Piece& piece = pieces_[piece_of_[v]];
    plan_.data[piece.whole] = buffer_of_data(piece.whole, n);
    return new_piece(bytes, n, last_[v], piece, plan_.data[piece.whole]);
  }

  /// The buffer of bottom 0, where top 0 may be written over it at this step; else -1.
  int taken_over(const Node& node, int time) const {
    if (!node.traits.can_overwrite_bottom || node.bottoms.empty()) return -1;
    const int bottom = graph_.root(node.bottoms[0]);
    const bool is_again = time >= nodes_ && is_dropped(bottom);
    const int buffer = is_again ? plan_.data_again[bottom] : plan_.data[bottom];
    const int last = is_again ? last_again_[bottom] : last_[bottom];
    if (pinned_[bottom] || last > time || buffer < 0) return -1;
    for (size_t b = 1; b < node.bottoms.size(); ++b) {
      if (graph_.root(node.bottoms[b]) == bottom) return -1;
    }
    const Value& top = graph_.values[node.tops[0]];
    const bool fits = bytes_of(top) == bytes_of(graph_.values[bottom]) &&
                      top.layout == graph_.values[node.bottoms[0]].layout;
    return fits ? buffer : -1;
  }

  /// In backward order: the first writer of a gradient overwrites, later ones add; its producer's
  /// backward is the last to read it.
  void lay_gradients() {
    std::vector<uint8_t> written(graph_.values.size(), 0);
    std::vector<uint8_t> kept(graph_.values.size(), 0);
    gradient_pieces_ = gradient_pieces(graph_);
    slice_piece_.assign(graph_.values.size(), -1);
    for (size_t i = 0; i < gradient_pieces_.of_slices.size(); ++i) {
      slice_piece_[gradient_pieces_.of_slices[i].part] = static_cast<int>(i);
    }
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
      if (b == 0 && slice_piece_[root] < 0 && plan_.gradient[root] < 0 &&
          can_take_over_gradient(node, top, root, kept)) {
        plan_.gradient[root] = plan_.gradient[top];
      } else {
        plan_.gradient[root] = buffer_of_gradient(n, root, time);
      }
    } else {
      plan_.how[n][b] = Write::accumulate;
      if (!node.traits.accumulates) {
        plan_.temporary[n][b] = new_buffer(bytes_of(graph_.values[root]), time, time);
      }
    }
    touch(root, time, kept);
  }

  /// The buffer of a gradient that node n is the first to write: its own, or a piece of another's.
  int buffer_of_gradient(int n, int root, int time) {
    if (plan_.gradient[root] >= 0) return plan_.gradient[root];  // made for one of its pieces
    const size_t bytes = bytes_of(graph_.values[root]);
    if (slice_piece_[root] >= 0) {
      const Piece& piece = gradient_pieces_.of_slices[slice_piece_[root]];
      int& whole = plan_.gradient[piece.whole];
      if (whole < 0) whole = new_buffer(bytes_of(graph_.values[piece.whole]), time, time);
      return new_piece(bytes, time, time, piece, whole);
    }
    for (const Piece& piece : gradient_pieces_.of_concat[n]) {
      if (piece.part != root || plan_.gradient[piece.whole] < 0) continue;
      return new_piece(bytes, time, time, piece, plan_.gradient[piece.whole]);
    }
    return new_buffer(bytes, time, time);
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
      const int last = std::max(again_time_[n], until_backward ? backward_time(n) : n);
      plan_.saved[n] = new_buffer(needs_[n].saved, n, last);
    }
    if (scratch > 0) plan_.scratch = new_buffer(scratch, 0, end_);
  }

  const Graph& graph_;
  const std::vector<Needs>& needs_;
  const MemoryOptions& options_;
  int nodes_, end_ = 0;
  std::vector<int> backward_time_, again_time_, run_again_;  // run_again_: in order
  std::vector<int> last_, last_again_;                       // per root
  std::vector<uint8_t> pinned_, is_whole_;
  std::vector<Piece> pieces_;
  std::vector<int> piece_of_, slice_piece_;  // per root: places in pieces_ and of_slices, or -1
  GradientPieces gradient_pieces_;
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
  for (size_t i = buffers.size(); i-- > 0;) {  // pieces stand behind what they are pieces of
    const PlannedBuffer& piece = buffers[i];
    if (piece.inside < 0) continue;
    PlannedBuffer& whole = buffers[piece.inside];
    whole.first = std::min(whole.first, piece.first);
    whole.last = std::max(whole.last, piece.last);
  }
  for (int i : order) {
    PlannedBuffer& buffer = buffers[i];
    if (buffer.inside >= 0) continue;
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
  for (PlannedBuffer& piece : buffers) {
    if (piece.inside >= 0) piece.offset = buffers[piece.inside].offset + piece.within;
  }
  return total;
}

MemoryPlan plan_memory(const Graph& graph, const std::vector<Needs>& needs,
                       const MemoryOptions& options) {
  return Planner(graph, needs, options).plan();
}

}  // namespace crema
