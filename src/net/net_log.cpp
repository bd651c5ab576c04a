// Caffe's set-up lines, the plan as a table, debug_info lines, and the search for the first value
// that is not finite.
#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <iomanip>

#include "io/prototxt.h"
#include "net/net_impl.h"
#include "net/saved.h"

namespace crema {
namespace {

std::string shape_text(const Shape& shape) {
  std::string text;
  for (int64_t dim : shape) text += str(dim, " ");
  return str(text, "(", shape.count(), ")");
}

void log_layer(const Graph& graph, const SavedLayer& layer, int64_t* values_so_far) {
  const std::string& name = layer.param.name();
  LOG(INFO) << "Creating Layer " << name;
  for (const std::string& bottom : layer.param.bottom()) LOG(INFO) << name << " <- " << bottom;
  for (int t = 0; t < layer.param.top_size(); ++t) {
    LOG(INFO) << name << " -> " << layer.param.top(t) << (layer.in_place[t] ? " (in-place)" : "");
  }
  LOG(INFO) << "Setting up " << name;
  for (size_t t = 0; t < layer.top_values.size(); ++t) {
    const Value& value = graph.values[layer.top_values[t]];
    LOG(INFO) << "Top shape: " << shape_text(value.shape);
    const bool carries_weight = layer.node < 0 ? t == 0 : value.users.empty();
    if (value.loss_weight != 0 && carries_weight)
      LOG(INFO) << "    with loss weight " << value.loss_weight;
    *values_so_far += value.shape.count();
  }
  LOG(INFO) << "Memory required for data: " << *values_so_far * static_cast<int64_t>(sizeof(float));
}

double mean_absolute(const std::vector<float>& values) {
  double sum = 0;
  for (float x : values) sum += std::abs(x);
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// As it was named for sharing, else its index.
std::string param_name(const Node& node, size_t index) {
  const int i = static_cast<int>(index);
  const bool has_name = i < node.param.param_size() && !node.param.param(i).name().empty();
  return has_name ? node.param.param(i).name() : str(i);
}

std::string order_of(const Value& value) {
  const char* layout = value.layout == Layout::nhwc ? "nhwc" : "nchw";
  if (value.dtype == DType::f32) return layout;
  return str(layout, value.dtype == DType::bf16 ? " bf16" : " f16");
}

std::vector<float> read(Ops& ops, const Tensor& tensor) {
  if (!tensor) return std::vector<float>(static_cast<size_t>(tensor.count()));
  return read_nchw(ops, tensor);
}

}  // namespace

void Net::Impl::log_setup() const {
  LOG(INFO) << "Initializing net from parameters: \n" << write_text(proto);
  int64_t values = 0;
  const std::vector<SavedLayer> layers = saved_layers(graph);
  for (const SavedLayer& layer : layers) log_layer(graph, layer, &values);
  for (size_t i = layers.size(); i-- > 0;) {
    const SavedLayer& layer = layers[i];
    const bool needs = layer.node >= 0 ? graph.nodes[layer.node].runs_backward
                                       : graph.values[layer.top_values[0]].has_gradient;
    LOG(INFO) << layer.param.name() << (needs ? " needs" : " does not need")
              << " backward computation.";
  }
  std::vector<std::string> names;
  for (const Value& value : graph.values) {
    if (value.users.empty() && value.last_version) names.push_back(value.name);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) LOG(INFO) << "This network produces output " << name;
}

/// What the device replays at once, and what splits it.
std::string Net::Impl::describe_recordings() const {
  int recorded = 0;
  std::vector<std::string> called;
  for (const Stretch& stretch : stretches) {
    recorded += stretch.can_record ? 1 : 0;
    for (int n = stretch.begin; n < stretch.end && !stretch.can_record; ++n) {
      const Node& node = graph.nodes[n];
      const bool splits =
          is_dynamic() ? node.layer->shapes_after_forward().has_value() : !node.is_absorbed;
      if (splits) called.push_back(str(node.param.name(), " (", node.param.type(), ")"));
    }
  }
  if (is_dynamic()) return str("Nothing is recorded: shapes follow the data behind ", join(called));
  std::string text = str("Forward is ", recorded, recorded == 1 ? " recording" : " recordings",
                         called.empty() ? "" : ", split by " + join(called));
  if (!options.train) return text;
  const auto parts = std::count_if(whole_backward.begin(), whole_backward.end(),
                                   [](const BackwardPart& part) { return part.can_record; });
  return str(text, "; backward is ", parts, parts == 1 ? " recording" : " recordings");
}

std::string Net::describe_plan() const {
  const Impl& net = *impl_;
  std::ostringstream out;
  out << "Plan on " << net.ops->describe() << ":\n";
  out << std::left << std::setw(34) << "  step" << std::setw(24) << "top" << std::setw(10)
      << "layout" << std::right << std::setw(10) << "KiB" << std::setw(14) << "at KiB"
      << "\n";
  for (const Node& node : net.graph.nodes) {
    for (int v : node.tops) {
      const Value& value = net.graph.values[v];
      const int buffer = net.plan.data[v];
      out << "  " << std::left << std::setw(32)
          << (node.param.name() + (node.runs_backward ? " *" : "") +
              (net.plan.data_again[v] >= 0 ? " again" : ""))
          << std::setw(24) << value.name << std::setw(10) << order_of(value) << std::right
          << std::setw(10) << value.desc().bytes() / 1024 << std::setw(14);
      if (buffer < 0) {
        out << "input\n";
      } else {
        out << net.plan.buffers[buffer].offset / 1024
            << (net.plan.buffers[buffer].inside >= 0 ? " inside\n" : "\n");
      }
    }
  }
  const MemoryReport& m = net.report;
  auto mib = [](size_t bytes) { return str((bytes + (1 << 19)) >> 20, " MiB"); };
  out << "  (* runs backward, again: dropped and computed again in backward, inside: a piece of "
         "another blob)\n";
  if (m.recomputed > 0) {
    out << "  backward computes " << m.recomputed << " steps again; without that, activations and "
        << "gradients would take " << mib(m.plain) << "\n";
  }
  out << "  activations and gradients " << mib(m.activations) << " (unplanned " << mib(m.unplanned)
      << "), parameters " << mib(m.parameters) << ", their gradients " << mib(m.gradients)
      << ", packed weights " << mib(m.packed);
  if (net.ops->can_record()) out << "\n  " << net.describe_recordings();
  return out.str();
}

void Net::log_debug_forward() const {
  const Impl& net = *impl_;
  for (const Node& node : net.graph.nodes) {
    if (node.is_convert) continue;
    for (int v : node.tops) {
      LOG(INFO) << "    [Forward] Layer " << node.param.name() << ", top blob "
                << net.graph.values[v].name
                << " data: " << mean_absolute(read(*net.ops, net.data(v)));
    }
    for (size_t i = 0; i < node.params.size(); ++i) {
      LOG(INFO) << "    [Forward] Layer " << node.param.name() << ", param blob "
                << param_name(node, i)
                << " data: " << mean_absolute(read(*net.ops, net.params[node.params[i]].value));
    }
  }
}

void Net::log_debug_backward() const {
  const Impl& net = *impl_;
  for (size_t n = net.graph.nodes.size(); n-- > 0;) {
    const Node& node = net.graph.nodes[n];
    if (!node.runs_backward || node.is_convert) continue;
    for (size_t b = 0; b < node.bottoms.size(); ++b) {
      if (!node.propagates[b]) continue;
      LOG(INFO) << "    [Backward] Layer " << node.param.name() << ", bottom blob "
                << net.graph.values[node.bottoms[b]].name
                << " diff: " << mean_absolute(net.read_gradient(net.gradient(node.bottoms[b])));
    }
    for (size_t i = 0; i < node.params.size(); ++i) {
      const Tensor& gradient = net.params[node.params[i]].gradient;
      if (!gradient) continue;
      LOG(INFO) << "    [Backward] Layer " << node.param.name() << ", param blob "
                << param_name(node, i) << " diff: " << mean_absolute(net.read_gradient(gradient));
    }
  }
  double data1 = 0, diff1 = 0, data2 = 0, diff2 = 0;
  for (const NetParam& param : net.params) {
    for (float x : read(*net.ops, param.value)) data1 += std::abs(x), data2 += double{x} * x;
    for (float x : net.read_gradient(param.gradient)) diff1 += std::abs(x), diff2 += double{x} * x;
  }
  LOG(INFO) << "    [Backward] All net params (data, diff): L1 norm = (" << data1 << ", " << diff1
            << "); L2 norm = (" << std::sqrt(data2) << ", " << std::sqrt(diff2) << ")";
}

std::string Net::find_not_finite() {
  Impl& net = *impl_;
  auto is_bad = [&](const Tensor& tensor) {
    for (float x : read(*net.ops, tensor)) {
      if (!std::isfinite(x)) return true;
    }
    return false;
  };
  for (size_t n = 0; n < net.graph.nodes.size(); ++n) {
    const Node& node = net.graph.nodes[n];
    for (size_t i = 0; i < node.params.size(); ++i) {
      if (is_bad(net.params[node.params[i]].value)) {
        return str("layer \"", node.param.name(), "\" (", node.param.type(), "), parameter ", i);
      }
    }
    if (!node.bottoms.empty()) net.run_forward(static_cast<int>(n));
    for (int v : node.tops) {
      if (is_bad(net.data(v))) {
        return str("layer \"", node.param.name(), "\" (", node.param.type(), "), top \"",
                   net.graph.values[v].name, "\"");
      }
    }
  }
  return {};
}

}  // namespace crema
