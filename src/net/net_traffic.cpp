// What a step of the plan stands for, and the bytes that it moves.
#include <algorithm>

#include "net/net_impl.h"

namespace crema {

std::vector<std::string> Net::layers_of_step(int index) const {
  const Node& node = impl_->graph.nodes[index];
  if (node.is_absorbed) return {};
  std::vector<std::string> names{node.param.name()};
  names.insert(names.end(), node.absorbed_names.begin(), node.absorbed_names.end());
  return names;
}

StepTraffic Net::traffic_of_step(int index) const {
  StepTraffic traffic;
  const Node& node = impl_->graph.nodes[index];
  if (node.is_absorbed || node.traits.tops_alias_bottom) return traffic;
  const Step& step = impl_->steps[index];
  const auto sum = [](const auto& tensors) {
    double bytes = 0;
    for (const auto& tensor : tensors)
      bytes += tensor ? static_cast<double>(tensor.desc.bytes()) : 0;
    return bytes;
  };
  double params = 0;
  for (const Param& param : node.layer->params()) {
    params += static_cast<double>(param.value.desc.bytes());
  }
  traffic.forward = sum(step.bottoms) + sum(step.tops) + params;
  if (!node.runs_backward) return traffic;
  const auto gradients = [](const std::vector<Grad>& grads) {
    double bytes = 0;
    for (const Grad& grad : grads) {
      const double once = grad ? static_cast<double>(grad.t.desc.bytes()) : 0;
      bytes += grad.how == Write::accumulate ? 2 * once : once;
    }
    return bytes;
  };
  traffic.backward =
      sum(step.dtops) + gradients(step.dbottoms) + gradients(step.dparams_first) + params;
  const auto read_back = [](const auto& tensors, uint64_t mask) {
    double bytes = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (mask >> std::min<size_t>(i, 63) & 1)
        bytes += static_cast<double>(tensors[i].desc.bytes());
    }
    return bytes;
  };
  traffic.backward += read_back(step.bottoms, node.traits.backward_reads_bottoms) +
                      read_back(step.tops, node.traits.backward_reads_tops);
  return traffic;
}

}  // namespace crema
