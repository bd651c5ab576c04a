// Net: runs the passes and walks the steps. Nothing here allocates once the net is built.
#include "net/net.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/trace.h"
#include "feed/feed.h"
#include "net/filter.h"
#include "net/fuse.h"
#include "net/layout.h"
#include "net/net_impl.h"
#include "net/precision.h"
#include "net/saved.h"
#include "net/upgrade.h"
#include "net/wire.h"
#include "ops/kernels/finite_check.h"
#include "ops/kernels/loss_gradient.h"

namespace crema {
namespace {

NetState effective_state(const NetParameter& param, const NetOptions& options) {
  NetState state = param.state();
  if (!state.has_phase()) state.set_phase(options.phase);
  if (!state.has_level()) state.set_level(options.level);
  for (const std::string& stage : options.stages) state.add_stage(stage);
  return state;
}

/// The data layer that node's last bottom comes from, or one before it: labels stand last. nullptr
/// where no data layer lies before node.
const Node* source_of(const Graph& graph, const Node& node, std::vector<uint8_t>& is_seen) {
  if (node.layer->feed() != nullptr) return &node;
  for (size_t b = node.bottoms.size(); b-- > 0;) {
    const int producer = graph.values[node.bottoms[b]].producer;
    if (is_seen[producer]) continue;
    is_seen[producer] = 1;
    const Node* source = source_of(graph, graph.nodes[producer], is_seen);
    if (source != nullptr) return source;
  }
  return nullptr;
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
  const std::vector<SavedLayer> saved = saved_layers(graph);
  for (const SavedLayer& layer : saved) *saved_proto.add_layer() = layer.param;
  name_blobs();
  if (options.fuse && !options.keep_all) fuse(graph, options.train);
  lay_out(graph, *ops, options.force_nchw);
  precision = lower_precision(graph, *ops, proto, {options.precision, options.train, options.file});
  make_params();
  find_saved_nodes(saved);
  plan_layers();
  plan_arena();
  check_memory();
  arena = shared_with ? shared_with->impl_->arena : std::make_shared<Arena>();
  allocate();
  bind_if_moved();
  if (options.train) make_loss_reading();
  if (options.log && ops->can_record()) LOG(INFO) << describe_recordings();
  if (options.log) LOG(INFO) << "Network initialization done.";
}

void Net::Impl::find_saved_nodes(const std::vector<SavedLayer>& saved) {
  std::vector<int> of_file;  // the nodes as they were numbered before convert nodes came between
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!graph.nodes[n].is_convert) of_file.push_back(static_cast<int>(n));
  }
  for (const SavedLayer& layer : saved) {
    const int node = layer.node < 0 ? -1 : of_file[layer.node];
    saved_nodes.push_back(node >= 0 && graph.nodes[node].params.empty() ? -1 : node);
  }
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
      const auto count = static_cast<size_t>(value.shape.count());
      loss_staging.resize(std::max(loss_staging.size(), count));
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
  for (int v : node.bottoms) bottom.push_back(graph.values[v].desc());
  for (int v : node.tops) top.push_back(graph.values[v].desc());
  std::vector<uint8_t> need_dw;
  for (int p : node.params) need_dw.push_back(graph.params[p].needs_gradient);
  const PlanContext context{bottom,
                            top,
                            node.propagates,
                            need_dw,
                            options.train && node.runs_backward,
                            wish.is_asked_for()};
  try {
    return node.layer->plan(*ops, context);
  } catch (const Error& error) {
    throw error.at(place_of(node.param, options.file));
  }
}

void Net::Impl::plan_layers() {
  needs.resize(graph.nodes.size());
  wish.everywhere = options.train && (proto.recompute() || options.recompute);
  wish.limit = options.train ? options.memory_limit : 0;
  for (const Node& node : graph.nodes) {
    const bool is_written = options.train && node.param.has_recompute();
    wish.layer_wish.push_back(static_cast<int8_t>(is_written ? node.param.recompute() : -1));
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].is_absorbed) continue;
    needs[n] = plan_layer(static_cast<int>(n));
    report.scratch = std::max(report.scratch, needs[n].scratch);
    report.saved += needs[n].saved;
    report.state += needs[n].state;
    report.packed += needs[n].packed;
  }
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
  const TraceSpan span("forward", node.param.name(), true);
  node.layer->forward(*ops, step.bottoms, step.tops);
  if (node.layer->shapes_after_forward()) follow_shapes(n);
}

void Net::Impl::run_stretch(size_t index) {
  const int begin = stretches[index].begin, end = stretches[index].end;
  const auto walk = [=, this] {
    for (int n = begin; n < end; ++n) run_forward(n);
  };
  if (!stretches[index].can_record) return walk();  // may make all stretches anew
  Stretch& stretch = stretches[index];
  bool is_fresh = false;
  for (int n = begin; n < end; ++n) {
    is_fresh |= steps[n].params_version != *params_version && !graph.nodes[n].params.empty();
  }
  if (!is_fresh) return stretch.same_params.run(*ops, walk);
  for (int n = begin; n < end; ++n) steps[n].params_version = -1;
  stretch.fresh_params.run(*ops, walk);
  for (int n = begin; n < end; ++n) steps[n].params_version = *params_version;
}

void Net::Impl::run_again(int n) {
  Node& node = graph.nodes[n];
  const TraceSpan span("recompute", node.param.name(), true);
  node.layer->forward_again(*ops, steps[n].bottoms_late, steps[n].tops_again);
}

void Net::Impl::run_backward(int n) {
  Node& node = graph.nodes[n];
  if (!node.runs_backward || node.traits.tops_alias_bottom) return;
  if (!recompute.is_none()) {
    for (int again : recompute.before[n]) run_again(again);
  }
  const TraceSpan span("backward", node.param.name(), true);
  const Step& step = steps[n];
  const auto& dparams = gradients_empty ? step.dparams_first : step.dparams_further;
  node.layer->backward(*ops,
                       {step.bottoms_late, step.tops_read, step.dtops, step.dbottoms, dparams});
  for (const Step::Addition& addition : step.additions) ops->add(addition.from, addition.to);
}

void Net::Impl::fill_loss_gradients() {
  for (int v : loss_values) {
    const Tensor own = gradient(v);
    if (!own) continue;
    float weight = 0;  // blobs in one memory (Reshape) have one gradient
    for (int other : loss_values) {
      if (gradient(other).data == own.data) weight += graph.values[other].loss_weight;
    }
    run(*ops, LossGradient{own.f32(), weight, &ops->step_scalars()->loss_scale}, own.count());
  }
}

/// Throws Error for bad data; false where parameters are not finite.
bool Net::Impl::check_fault() const {
  const std::optional<Fault> fault = ops->take_fault();
  if (!fault) return true;
  if (fault->index == kNotFinite) return false;
  for (const Node& node : graph.nodes) {
    if (node.is_convert || node.layer->fault_index() != fault->layer) continue;
    const auto sample = static_cast<size_t>(node.layer->sample_of(*fault));
    std::string record;
    std::vector<uint8_t> is_seen(graph.nodes.size(), 0);
    const Node* source = source_of(graph, node, is_seen);
    if (source != nullptr && sample < source->layer->feed()->keys().size()) {
      record = str(" (record \"", source->layer->feed()->keys()[sample], "\" of layer \"",
                   source->param.name(), "\")");
    }
    throw Error(node.layer->explain(*fault) + record).at(place_of(node.param, options.file));
  }
  return true;
}

void Net::Impl::enqueue_forward() {
  bind_if_moved();
  StepScalars scalars = ops->step();
  scalars.forward_count = forward_count++;
  ops->set_step(scalars);
  for (size_t i = 0; i < stretches.size(); ++i) run_stretch(i);
}

float Net::forward() {
  impl_->enqueue_forward();
  if (!impl_->check_fault()) return std::numeric_limits<float>::quiet_NaN();
  return impl_->total_loss();
}

/// Nodes from begin down to end + 1; before the last node of all, what the losses begin with.
void Net::Impl::walk_backward(int begin, int end) {
  if (begin == static_cast<int>(graph.nodes.size()) - 1) fill_loss_gradients();
  for (int n = begin; n > end; --n) run_backward(n);
}

void Net::Impl::run_backward_parts(std::vector<BackwardPart>& parts, const GradientFinal& final) {
  assert(options.train);
  loss_scale = ops->step().loss_scale;
  for (BackwardPart& part : parts) {
    const auto walk = [&] { walk_backward(part.begin, part.end); };
    if (part.can_record) {
      (gradients_empty ? part.first : part.further).run(*ops, walk);
    } else if (part.begin > part.end) {
      walk();
    }
    for (const Tensor& gradient : part.final) final(gradient);
  }
  gradients_empty = false;
}

void Net::backward() { impl_->run_backward_parts(impl_->whole_backward, {}); }

void Net::backward(const GradientFinal& final) {
  impl_->run_backward_parts(impl_->backward_in_buckets, final);
}

float Net::forward_backward(const GradientFinal& final) {
  const auto run_backward = [&] { final ? backward(final) : backward(); };
  if (impl_->loss_reading.side == nullptr) {
    const float loss = forward();
    if (std::isfinite(loss)) run_backward();
    return loss;
  }
  impl_->enqueue_forward();
  impl_->begin_loss_reading();
  run_backward();
  return impl_->finish_loss_reading();
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
DType Net::precision() const { return impl_->precision; }

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
  for (const Node& node : impl_->graph.nodes) {  // without parameters two may have one name
    Feed* feed = node.param.name() == layer ? node.layer->feed() : nullptr;
    if (feed != nullptr) feed->seek(records);
  }
}

void Net::forward_layer(int index) {
  impl_->bind_if_moved();
  impl_->run_forward(index);
}

void Net::backward_layer(int index) { impl_->run_backward(index); }

}  // namespace crema
