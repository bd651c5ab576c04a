// Net: runs the passes, lays out memory, and walks the steps. Nothing here allocates once the net
// is built.
#include "net/net.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "feed/feed.h"
#include "layers/filler.h"
#include "net/filter.h"
#include "net/fuse.h"
#include "net/layout.h"
#include "net/net_impl.h"
#include "net/saved.h"
#include "net/upgrade.h"
#include "net/wire.h"

namespace crema {
namespace {

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

Tensor tensor_at(void* base, size_t offset, const TensorDesc& desc) {
  return {static_cast<char*>(base) + offset, desc};
}

NetState effective_state(const NetParameter& param, const NetOptions& options) {
  NetState state = param.state();
  if (!state.has_phase()) state.set_phase(options.phase);
  if (!state.has_level()) state.set_level(options.level);
  for (const std::string& stage : options.stages) state.add_stage(stage);
  return state;
}

}  // namespace

Net::Net(const NetParameter& param, const NetOptions& options, std::shared_ptr<Ops> ops,
         Net* shared_with)
    : impl_(std::make_unique<Impl>()) {
  impl_->options = options;
  impl_->ops = std::move(ops);
  impl_->parent = shared_with;
  impl_->build(param, shared_with);
}

Net::~Net() = default;

void Net::Impl::build(const NetParameter& param, Net* shared_with) {
  ErrorList errors;
  proto = param;
  upgrade_net(proto, options.file);
  *proto.mutable_state() = effective_state(proto, options);
  filter_net(proto, proto.state(), options.file, errors);
  if (proto.layer_size() == 0) {
    errors.add(Error(
        str(options.file, ": the net has no layers in phase ", Phase_Name(proto.state().phase()))));
  }
  LayerContext context;
  context.seed = options.seed;
  context.rank = options.rank;
  context.ranks = options.ranks;
  graph = wire(proto, {context, options.file, options.train}, errors);
  errors.throw_if_any();
  if (options.log) log_setup();
  saved_proto.set_name(graph.name);
  for (const SavedLayer& layer : saved_layers(graph)) *saved_proto.add_layer() = layer.param;
  name_blobs();
  if (options.fuse && !options.keep_all) fuse(graph, options.train);
  lay_out(graph, *ops, options.force_nchw);
  make_params();
  for (const LayerParameter& layer : saved_proto.layer()) {
    const int node = node_named(layer.name());
    saved_nodes.push_back(node >= 0 && graph.nodes[node].params.empty() ? -1 : node);
  }
  plan_layers();
  arena = shared_with ? shared_with->impl_->arena : std::make_shared<Arena>();
  allocate();
  bind_if_moved();
  if (options.log) LOG(INFO) << "Network initialization done.";
}

void Net::Impl::name_blobs() {
  std::map<std::string, float> sorted;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    Value& value = graph.values[v];
    if (options.keep_all) value.kept = true;
    if (std::find(options.keep.begin(), options.keep.end(), value.name) != options.keep.end())
      value.kept = true;
    if (value.last_version) {
      blobs[value.name] = static_cast<int>(v);
      blob_order.push_back(value.name);
    }
    if (value.users.empty() && value.last_version) {
      value.kept = true;
      sorted[value.name] = value.loss_weight;
    }
    if (value.loss_weight != 0) {
      loss_values.push_back(static_cast<int>(v));
      value.kept = true;
    }
    if (graph.nodes[value.producer].is_input) {
      input_names.push_back(value.name);
      value.kept = true;  // its gradient may be asked for
    }
  }
  for (const auto& [name, weight] : sorted) {
    outputs.push_back({name, weight});
    output_values.push_back(blobs[name]);
  }
}

Needs Net::Impl::plan_layer(int n) {
  Node& node = graph.nodes[n];
  std::vector<TensorDesc> bottom, top;
  for (int v : node.bottoms) {
    bottom.push_back({graph.values[v].shape, DType::f32, graph.values[v].layout});
  }
  for (int v : node.tops) {
    top.push_back({graph.values[v].shape, DType::f32, graph.values[v].layout});
  }
  std::vector<uint8_t> need_dw;
  for (int p : node.params) need_dw.push_back(graph.params[p].needs_gradient);
  const PlanContext context{bottom, top, node.propagates, need_dw,
                            options.train && node.runs_backward};
  try {
    return node.layer->plan(*ops, context);
  } catch (const Error& error) {
    throw error.at(place_of(node.param, options.file));
  }
}

void Net::Impl::plan_layers() {
  needs.resize(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].is_absorbed) continue;
    needs[n] = plan_layer(static_cast<int>(n));
    report.scratch = std::max(report.scratch, needs[n].scratch);
    report.saved += needs[n].saved;
    report.state += needs[n].state;
    report.packed += needs[n].packed;
  }
  plan = plan_memory(graph, needs, {options.train, options.train});
  report.activations = plan.arena_bytes;
  report.unplanned = plan.unplanned_bytes;
}

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
  const TensorDesc desc{value.shape, DType::f32, value.layout};
  const auto input = inputs.find(graph.root(v));
  if (input != inputs.end()) return {input->second.data, desc};
  return tensor_at(arena->memory.get(), plan.buffers[plan.data[v]].offset, desc);
}

Tensor Net::Impl::gradient(int v) const {
  const Value& value = graph.values[v];
  if (!value.has_gradient || plan.gradient[v] < 0) return {};
  return tensor_at(arena->memory.get(), plan.buffers[plan.gradient[v]].offset,
                   {value.shape, DType::f32, value.layout});
}

void Net::Impl::make_step(int n) {
  const Node& node = graph.nodes[n];
  Step& step = steps[n];
  step = Step();
  for (int v : node.bottoms) step.bottoms.push_back(data(v));
  for (int v : node.tops) {
    step.tops.push_back(data(v));
    step.tops_read.push_back(step.tops.back());
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
  step.workspace.packed = packed[n];
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
}

void Net::Impl::bind_if_moved() {
  if (arena_version == arena->version) return;
  bind();
  arena_version = arena->version;
}

void Net::Impl::run_forward(int n) {
  Node& node = graph.nodes[n];
  if (node.is_absorbed) return;
  Step& step = steps[n];
  if (step.params_version != *params_version && !node.params.empty()) {
    node.layer->params_changed(*ops);
    step.params_version = *params_version;
  }
  if (node.traits.tops_alias_bottom) return;
  node.layer->forward(*ops, step.bottoms, step.tops);
  if (node.layer->shapes_after_forward()) follow_shapes(n);
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

void Net::Impl::run_backward(int n) {
  Node& node = graph.nodes[n];
  if (!node.runs_backward || node.traits.tops_alias_bottom) return;
  const Step& step = steps[n];
  const auto& dparams = gradients_empty ? step.dparams_first : step.dparams_further;
  node.layer->backward(*ops, {step.bottoms, step.tops_read, step.dtops, step.dbottoms, dparams});
  for (const Step::Addition& addition : step.additions) ops->add(addition.from, addition.to);
}

void Net::Impl::fill_loss_gradients() {
  for (int v : loss_values) {
    const Value& value = graph.values[v];
    if (value.has_gradient) ops->fill(value.loss_weight, gradient(v));
  }
}

float Net::Impl::total_loss() const {
  double loss = 0;
  std::vector<float> values;
  for (int v : loss_values) {
    const Tensor tensor = data(v);
    values.resize(static_cast<size_t>(tensor.count()));
    ops->download(tensor, values.data());
    double sum = 0;
    for (float x : values) sum += x;
    loss += sum * graph.values[v].loss_weight;
  }
  return static_cast<float>(loss);
}

void Net::Impl::check_fault() const {
  const std::optional<Fault> fault = ops->take_fault();
  if (!fault) return;
  for (const Node& node : graph.nodes) {
    if (node.is_convert || node.layer->fault_index() != fault->layer) continue;
    std::string record;
    for (const Node& source : graph.nodes) {
      Feed* feed = source.layer->feed();
      if (feed == nullptr || static_cast<size_t>(fault->index) >= feed->keys().size()) continue;
      record = str(" (record \"", feed->keys()[static_cast<size_t>(fault->index)], "\" of layer \"",
                   source.param.name(), "\")");
      break;
    }
    throw Error(node.layer->explain(*fault) + record).at(place_of(node.param, options.file));
  }
}

float Net::forward() {
  Impl& net = *impl_;
  net.bind_if_moved();
  StepScalars scalars = *net.ops->step_scalars();
  scalars.forward_count = net.forward_count++;
  net.ops->set_step(scalars);
  for (size_t n = 0; n < net.graph.nodes.size(); ++n) net.run_forward(static_cast<int>(n));
  net.check_fault();
  return net.total_loss();
}

void Net::backward() {
  Impl& net = *impl_;
  assert(net.options.train);
  net.fill_loss_gradients();
  for (int n = static_cast<int>(net.graph.nodes.size()) - 1; n >= 0; --n) net.run_backward(n);
  net.gradients_empty = false;
}

void Net::clear_gradients() { impl_->gradients_empty = true; }

const std::string& Net::name() const { return impl_->graph.name; }
Ops& Net::ops() const { return *impl_->ops; }
Phase Net::phase() const { return impl_->graph.state.phase(); }
int Net::layer_count() const { return static_cast<int>(impl_->graph.nodes.size()); }
Layer& Net::layer(int index) const { return *impl_->graph.nodes[index].layer; }
const std::string& Net::layer_name(int index) const {
  return impl_->graph.nodes[index].param.name();
}
bool Net::layer_needs_backward(int index) const { return impl_->graph.nodes[index].runs_backward; }
const MemoryReport& Net::memory() const { return impl_->report; }

int Net::layer_index(const std::string& name) const { return impl_->node_named(name); }

Layer* Net::find_layer(const std::string& name) const {
  for (const Node& node : impl_->graph.nodes) {
    if (node.param.name() == name && !node.is_convert) return node.layer.get();
  }
  return nullptr;
}

uint64_t Net::forward_count() const { return impl_->forward_count; }
void Net::set_forward_count(uint64_t count) { impl_->forward_count = count; }

std::vector<std::pair<std::string, uint64_t>> Net::cursors() const {
  std::vector<std::pair<std::string, uint64_t>> cursors;
  for (const Node& node : impl_->graph.nodes) {
    if (Feed* feed = node.layer->feed()) cursors.emplace_back(node.param.name(), feed->position());
  }
  return cursors;
}

void Net::seek(const std::string& layer, uint64_t records) {
  Layer* found = find_layer(layer);
  if (found && found->feed()) found->feed()->seek(records);
}

void Net::forward_layer(int index) {
  impl_->bind_if_moved();
  impl_->run_forward(index);
}

void Net::backward_layer(int index) { impl_->run_backward(index); }

}  // namespace crema
