// The first layer that names a parameter owns it; the others refer to its slot.
#include "net/share.h"

#include <map>

namespace crema {
namespace {

ParamSlot new_slot(const Node& node, int node_index, int index, const ParamSpec& spec) {
  const Param& param = node.layer->params()[index];
  ParamSlot slot;
  slot.name = spec.name();
  slot.owner = node.param.name();
  slot.node = node_index;
  slot.index = index;
  slot.shape = param.shape;
  slot.learnable = param.learnable;
  slot.has_lr_mult = spec.has_lr_mult();
  slot.has_decay_mult = spec.has_decay_mult();
  slot.lr_mult = param.learnable ? spec.lr_mult() : 0;
  slot.decay_mult = param.learnable ? spec.decay_mult() : 0;
  return slot;
}

void merge_multiplier(float& value, bool& written, bool spec_written, float spec_value,
                      const char* field, const ParamSlot& slot) {
  if (!spec_written) return;
  require(!written || value == spec_value, field, ": shared parameter \"", slot.name, "\" has ",
          value, " in its owner \"", slot.owner, "\" and ", spec_value, " here: they must agree");
  value = spec_value;
  written = true;
}

void join_slot(ParamSlot& slot, const Param& param, const ParamSpec& spec) {
  if (spec.share_mode() == ParamSpec::PERMISSIVE) {
    require(param.shape.count() == slot.shape.count(), "shared parameter \"", slot.name, "\" has ",
            slot.shape.count(), " values (shape ", slot.shape, ") in its owner \"", slot.owner,
            "\" and ", param.shape.count(), " here (shape ", param.shape, ")");
  } else {
    require(param.shape == slot.shape, "shared parameter \"", slot.name, "\" has the shape ",
            slot.shape, " in its owner \"", slot.owner, "\" and ", param.shape,
            " here (share_mode: PERMISSIVE needs only equal counts)");
  }
  merge_multiplier(slot.lr_mult, slot.has_lr_mult, spec.has_lr_mult(), spec.lr_mult(), "lr_mult",
                   slot);
  merge_multiplier(slot.decay_mult, slot.has_decay_mult, spec.has_decay_mult(), spec.decay_mult(),
                   "decay_mult", slot);
}

}  // namespace

void share_params(Graph& graph, const std::string& file, ErrorList& errors) {
  std::map<std::string, int> by_name;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    if (!node.layer) continue;
    for (int i = 0; i < static_cast<int>(node.layer->params().size()); ++i) {
      const ParamSpec spec = i < node.param.param_size() ? node.param.param(i) : ParamSpec();
      const auto it = spec.name().empty() ? by_name.end() : by_name.find(spec.name());
      if (it == by_name.end()) {
        node.params.push_back(static_cast<int>(graph.params.size()));
        if (!spec.name().empty()) by_name[spec.name()] = node.params.back();
        graph.params.push_back(new_slot(node, static_cast<int>(n), i, spec));
        continue;
      }
      node.params.push_back(it->second);
      try {
        join_slot(graph.params[it->second], node.layer->params()[i], spec);
      } catch (const Error& error) {
        errors.add(error.at(place_of(node.param, file)));
      }
    }
  }
}

}  // namespace crema
