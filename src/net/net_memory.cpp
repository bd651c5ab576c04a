// Where everything lies: memory taken once, tensors at planned places, and the one place that grows
// when sizes follow the data.
#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "net/net_impl.h"

namespace crema {
namespace {

constexpr int kPacked = -2;  // in Impl::grown: packed weights that outgrew theirs

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

Tensor tensor_at(void* base, size_t offset, const TensorDesc& desc) {
  return {static_cast<char*>(base) + offset, desc};
}

}  // namespace

void Net::Impl::allocate() {
  if (arena->bytes < plan.arena_bytes) {
    arena->memory = ops->allocate(plan.arena_bytes, Memory::device);
    arena->bytes = plan.arena_bytes;
    ++arena->version;
  }
  auto own = [&](size_t bytes) {
    if (bytes == 0) return Tensor{};
    owned.push_back(ops->allocate(bytes, Memory::device));
    return Tensor{owned.back().get(),
                  {Shape{static_cast<int64_t>(bytes)}, DType::u8, Layout::nchw}};
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    states.push_back(own(needs[n].state));
    packed.push_back(own(needs[n].packed));
    if (!graph.nodes[n].is_input) continue;
    for (int v : graph.nodes[n].tops) {
      const Value& value = graph.values[v];
      inputs[v] = {own(aligned(static_cast<size_t>(value.shape.count()) * sizeof(float))).data,
                   {value.shape, DType::f32, value.layout}};
    }
  }
}

Tensor Net::Impl::buffer_tensor(int buffer, size_t bytes) const {
  if (buffer < 0 || bytes == 0) return {};
  return tensor_at(arena->memory.get(), plan.buffers[buffer].offset,
                   {Shape{static_cast<int64_t>(bytes)}, DType::u8, Layout::nchw});
}

/// Planned memory, or memory of its own where shapes that followed the data need more than planned.
Tensor Net::Impl::workspace(int n, int buffer, size_t bytes) {
  if (bytes == 0) return {};
  if (buffer >= 0 && bytes <= plan.buffers[buffer].bytes) return buffer_tensor(buffer, bytes);
  Tensor& own = grown[{n, buffer}];
  if (own.desc.bytes() < bytes || !own) {
    LOG(INFO) << "layer \"" << graph.nodes[n].param.name() << "\" needs " << bytes
              << " bytes more for the shapes it now has";
    owned.push_back(ops->allocate(bytes, Memory::device));
    own = {owned.back().get(), {Shape{static_cast<int64_t>(bytes)}, DType::u8, Layout::nchw}};
  }
  return own;
}

Tensor Net::Impl::data(int v) const {
  const Value& value = graph.values[v];
  const TensorDesc desc = value.desc();
  const auto input = inputs.find(graph.root(v));
  if (input != inputs.end()) return {input->second.data, desc};
  return tensor_at(arena->memory.get(), plan.buffers[plan.data[v]].offset, desc);
}

/// Where v lies during backward.
Tensor Net::Impl::late_data(int v) const {
  const int again = plan.data_again[v];
  if (again < 0) return data(v);
  return tensor_at(arena->memory.get(), plan.buffers[again].offset, graph.values[v].desc());
}

Tensor Net::Impl::gradient(int v) const {
  const Value& value = graph.values[v];
  if (!value.has_gradient || plan.gradient[v] < 0) return {};
  return tensor_at(arena->memory.get(), plan.buffers[plan.gradient[v]].offset, value.desc());
}

void Net::Impl::make_step(int n) {
  const Node& node = graph.nodes[n];
  Step& step = steps[n];
  step = Step();
  for (int v : node.bottoms) {
    step.bottoms.push_back(data(v));
    step.bottoms_late.push_back(late_data(v));
  }
  for (int v : node.tops) {
    step.tops.push_back(data(v));
    step.tops_again.push_back(late_data(v));
    step.tops_read.push_back(step.tops_again.back());
    step.dtops.push_back(gradient(v));
  }
  for (size_t b = 0; b < node.bottoms.size(); ++b) {
    Grad grad;
    if (node.runs_backward && node.propagates[b]) {
      grad = {gradient(node.bottoms[b]), plan.how[n][b]};
      if (plan.temporary[n][b] >= 0) {
        Tensor temporary = buffer_tensor(plan.temporary[n][b], 1);
        temporary.desc = grad.t.desc;
        step.additions.push_back({temporary, grad.t});
        grad = {temporary, Write::overwrite};
      }
    }
    step.dbottoms.push_back(grad);
  }
  step.workspace.scratch = workspace(n, plan.scratch, needs[n].scratch);
  step.workspace.saved = workspace(n, plan.saved[n], needs[n].saved);
  step.workspace.state = states[n];
  const size_t own_packed = packed[n] ? packed[n].desc.bytes() : 0;
  step.workspace.packed =
      needs[n].packed <= own_packed ? packed[n] : workspace(n, kPacked, needs[n].packed);
}

void Net::Impl::bind() {
  steps.resize(graph.nodes.size());
  std::vector<uint8_t> written(params.size(), 0);
  for (int n = static_cast<int>(graph.nodes.size()) - 1; n >= 0; --n) {
    make_step(n);
    const Node& node = graph.nodes[n];
    std::vector<int> all_params = node.params;
    all_params.insert(all_params.end(), node.absorbed_params.begin(), node.absorbed_params.end());
    for (size_t i = 0; i < all_params.size(); ++i) {
      const int p = all_params[i];
      Tensor gradient = node.runs_backward ? params[p].gradient : Tensor{};
      if (gradient && i < node.params.size()) gradient.desc.shape = node.layer->params()[i].shape;
      steps[n].dparams_first.push_back(
          {gradient, written[p] ? Write::accumulate : Write::overwrite});
      steps[n].dparams_further.push_back({gradient, Write::accumulate});
      if (gradient) written[p] = 1;
    }
    if (!node.is_absorbed) node.layer->bind(steps[n].workspace);
  }
  make_stretches();
  if (!options.train) return;
  whole_backward = split_backward({});
  backward_in_buckets =
      split_backward(gradient_buckets(graph, params, groups, options.bucket_bytes));
}

/// Whether shapes follow the data somewhere: what is called then differs from pass to pass.
bool Net::Impl::is_dynamic() const {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.layer->shapes_after_forward().has_value();
  });
}

void Net::Impl::make_stretches() {
  stretches.clear();
  const bool records = ops->can_record() && !is_dynamic();
  for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n) {
    const LayerTraits& traits = graph.nodes[n].traits;
    const bool touches_host = traits.host_only || traits.calls_host;
    const bool can_record = records && !touches_host;
    if (stretches.empty() || !can_record || !stretches.back().can_record) {
      stretches.emplace_back();
      stretches.back().begin = n;
      stretches.back().can_record = can_record;
    }
    stretches.back().end = n + 1;
  }
}

/// Parts end where a bucket is final, and around layers whose backward touches the host.
std::vector<BackwardPart> Net::Impl::split_backward(
    const std::vector<GradientBucket>& buckets) const {
  const bool records = ops->can_record() && !is_dynamic();
  std::vector<BackwardPart> parts;
  int next = static_cast<int>(graph.nodes.size()) - 1;
  const auto add = [&](int end, bool can_record) {
    BackwardPart part;
    part.begin = std::exchange(next, end);
    part.end = end;
    part.can_record = can_record;
    parts.push_back(std::move(part));
  };
  const auto touches_host = [&](int n) {
    const Node& node = graph.nodes[n];
    return node.runs_backward && (node.traits.host_only || node.traits.calls_host);
  };
  const auto go_to = [&](int end) {
    while (next > end) {
      int stop = next;
      while (stop > end && !touches_host(stop)) --stop;
      if (stop < next) add(stop, records);
      if (stop > end) add(stop - 1, false);
    }
  };
  for (const GradientBucket& bucket : buckets) {
    go_to(bucket.last_writer - 1);
    if (parts.empty()) add(next, false);
    parts.back().final.push_back(bucket.gradient);
  }
  go_to(-1);
  return parts;
}

void Net::Impl::bind_if_moved() {
  if (arena_version == arena->version) return;
  bind();
  arena_version = arena->version;
}

/// After a layer whose tops' sizes depend on data: what follows is inferred and planned again in
/// the memory of the upper bounds.
void Net::Impl::follow_shapes(int n) {
  const Shapes actual = *graph.nodes[n].layer->shapes_after_forward();
  std::vector<uint8_t> changed(graph.values.size(), 0);
  auto set_shapes = [&](const Node& node, const Shapes& shapes) {
    for (size_t t = 0; t < node.tops.size(); ++t) {
      Value& value = graph.values[node.tops[t]];
      changed[node.tops[t]] = value.shape != shapes[t];
      value.shape = shapes[t];
    }
  };
  set_shapes(graph.nodes[n], actual);
  bool any = false;
  for (int m = n; m < static_cast<int>(graph.nodes.size()); ++m) {
    Node& node = graph.nodes[m];
    if (m > n) {
      Shapes bottoms;
      bool follows = false;
      for (int v : node.bottoms) {
        bottoms.push_back(graph.values[v].shape);
        follows = follows || changed[v];
      }
      if (!follows) continue;
      try {
        set_shapes(node, node.layer->infer(bottoms));
      } catch (const Error& error) {
        throw error.at(place_of(node.param, options.file));
      }
      needs[m] = plan_layer(m);
      steps[m].params_version = -1;
    }
    for (int v : node.tops) any = any || changed[v];
  }
  if (any) bind();
}

}  // namespace crema
