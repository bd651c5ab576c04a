// A shared parameter is final when the first of its layers has run backward: all of them add to one
// gradient. The order depends on the net alone, so that all ranks sum alike.
#include "net/gradient_buckets.h"

#include <algorithm>

namespace crema {
namespace {

/// By parameter: the first node that runs backward and has it.
std::vector<int> last_writers(const Graph& graph) {
  std::vector<int> writers(graph.params.size(), static_cast<int>(graph.nodes.size()));
  for (int n = static_cast<int>(graph.nodes.size()) - 1; n >= 0; --n) {
    const Node& node = graph.nodes[static_cast<size_t>(n)];
    if (!node.runs_backward || node.traits.tops_alias_bottom) continue;
    for (const int p : node.params) writers[static_cast<size_t>(p)] = n;
    for (const int p : node.absorbed_params) writers[static_cast<size_t>(p)] = n;
  }
  return writers;
}

}  // namespace

std::vector<GradientBucket> gradient_buckets(const Graph& graph,
                                             const std::vector<NetParam>& params,
                                             const std::vector<Net::Group>& groups, size_t bytes) {
  const std::vector<int> writers = last_writers(graph);
  const int never = static_cast<int>(graph.nodes.size());
  std::vector<GradientBucket> buckets;
  for (const Net::Group& group : groups) {
    if (!group.gradient) continue;
    int64_t end = group.gradient.count();
    int last_writer = never;
    for (size_t m = group.members.size(); m-- > 0;) {
      const auto p = static_cast<size_t>(group.members[m]);
      last_writer = std::min(last_writer, writers[p]);
      const int64_t begin = params[p].gradient.f32() - group.gradient.f32();
      if (m > 0 && static_cast<size_t>(end - begin) * sizeof(float) < bytes) continue;
      buckets.push_back(
          {{group.gradient.f32() + begin, TensorDesc{Shape{end - begin}}}, last_writer});
      end = begin;
      last_writer = never;
    }
  }
  std::stable_sort(buckets.begin(), buckets.end(),
                   [](const GradientBucket& a, const GradientBucket& b) {
                     return a.last_writer > b.last_writer;
                   });
  return buckets;
}

}  // namespace crema
