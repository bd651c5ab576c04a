// How much memory the net takes in all, what is dropped so that it takes less, and what to say when
// it does not fit.
#include "base/error.h"
#include "net/net_impl.h"

namespace crema {
namespace {

std::string mib(size_t bytes) { return str((bytes + (size_t{1} << 20) - 1) >> 20, " MiB"); }

}  // namespace

size_t Net::Impl::fixed_bytes() const {
  const auto histories = static_cast<size_t>(options.histories);
  return report.parameters + report.gradients * (1 + histories) + report.state + report.packed;
}

void Net::Impl::plan_arena() {
  MemoryOptions wanted{options.train, options.train};
  plan = plan_memory(graph, needs, wanted);
  report.plain = plan.arena_bytes;
  report.unplanned = plan.unplanned_bytes;
  wish.fixed_bytes = fixed_bytes();
  if (options.train && wish.is_asked_for()) {
    recompute = choose_recompute(graph, needs, wanted, wish);
    for (const std::vector<int>& list : recompute.before) {
      report.recomputed += static_cast<int>(list.size());
    }
    wanted.recompute = recompute;
    plan = plan_memory(graph, needs, wanted);
  }
  report.activations = plan.arena_bytes;
}

void Net::Impl::check_memory() {
  const size_t limit = options.memory_limit > 0 ? options.memory_limit : ops->capacity();
  const size_t total = fixed_bytes() + plan.arena_bytes;
  if (parent != nullptr || limit == 0 || total <= limit) return;
  const size_t fixed = fixed_bytes();
  int64_t batch = 0;
  try {
    batch = largest_batch(limit);
  } catch (const Error&) {
    batch = -1;  // the net is made for one batch size
  }
  fail(options.file, ": the net does not fit: it needs ", mib(total), " (", mib(fixed),
       " of them for parameters), and ",
       options.memory_limit > 0 ? "the memory limit is " : "the device has ", mib(limit),
       batch > 0    ? str("; the largest batch that fits is ", batch)
       : batch == 0 ? std::string("; not even a batch of 1 fits")
                    : std::string(),
       options.train && !wish.everywhere && wish.limit == 0
           ? "; recompute: true takes less memory and more time"
           : "");
}

/// By halving: more pictures take more memory.
int64_t Net::Impl::largest_batch(size_t limit) {
  std::vector<Shape> sources;
  int64_t own = 0;
  for (const Node& node : graph.nodes) {
    if (!node.bottoms.empty()) continue;
    for (int v : node.tops) {
      sources.push_back(graph.values[v].shape);
      if (own == 0) own = sources.back().dim_or_one(0);
    }
  }
  int64_t fits = 0, too_large = own;
  while (too_large - fits > 1) {
    const int64_t middle = fits + (too_large - fits) / 2;
    (bytes_at(middle, own, sources) <= limit ? fits : too_large) = middle;
  }
  return fits;
}

/// What the net would take with another batch: sources whose first size is a multiple of the batch
/// shrink with it, all that follows is inferred and planned again. The net is of no use afterwards.
size_t Net::Impl::bytes_at(int64_t batch, int64_t own, const std::vector<Shape>& sources) {
  size_t source = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    if (node.is_absorbed) continue;
    Shapes bottoms, tops;
    for (int v : node.bottoms) bottoms.push_back(graph.values[v].shape);
    if (node.bottoms.empty()) {
      for (size_t t = 0; t < node.tops.size(); ++t) {
        tops.push_back(sources[source++]);
        if (tops[t].axes() > 0 && tops[t][0] % own == 0) tops[t][0] = tops[t][0] / own * batch;
      }
    } else {
      tops = node.layer->infer(bottoms);
    }
    for (size_t t = 0; t < node.tops.size(); ++t) graph.values[node.tops[t]].shape = tops[t];
    needs[n] = plan_layer(static_cast<int>(n));
  }
  MemoryOptions wanted{options.train, options.train};
  if (options.train && wish.is_asked_for()) {
    wanted.recompute = choose_recompute(graph, needs, wanted, wish);
  }
  return fixed_bytes() + plan_memory(graph, needs, wanted).arena_bytes;
}

}  // namespace crema
