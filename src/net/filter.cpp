// include: in if any rule matches; exclude: out if any rule matches; no rules: always in.
#include "net/filter.h"

#include <algorithm>

#include "net/graph.h"
#include "net/upgrade.h"

namespace crema {
namespace {

bool has_stage(const NetState& state, const std::string& stage) {
  return std::find(state.stage().begin(), state.stage().end(), stage) != state.stage().end();
}

bool is_in(const LayerParameter& layer, const NetState& state) {
  auto matches_state = [&](const NetStateRule& rule) { return matches(state, rule); };
  if (layer.include_size() > 0) {
    return std::any_of(layer.include().begin(), layer.include().end(), matches_state);
  }
  return std::none_of(layer.exclude().begin(), layer.exclude().end(), matches_state);
}

}  // namespace

bool matches(const NetState& state, const NetStateRule& rule) {
  if (rule.has_phase() && rule.phase() != state.phase()) return false;
  if (rule.has_min_level() && state.level() < rule.min_level()) return false;
  if (rule.has_max_level() && state.level() > rule.max_level()) return false;
  for (const std::string& stage : rule.stage()) {
    if (!has_stage(state, stage)) return false;
  }
  for (const std::string& stage : rule.not_stage()) {
    if (has_stage(state, stage)) return false;
  }
  return true;
}

void filter_net(NetParameter& net, const NetState& state, const std::string& file,
                ErrorList& errors) {
  auto* layers = net.mutable_layer();
  int kept = 0;
  for (int i = 0; i < layers->size(); ++i) {
    LayerParameter& layer = *layers->Mutable(i);
    if (layer.include_size() > 0 && layer.exclude_size() > 0) {
      errors.add(Error("a layer may have include rules or exclude rules, not both")
                     .at(place_of(layer, file)));
    }
    if (is_in(layer, state)) layers->SwapElements(i, kept++);
  }
  layers->DeleteSubrange(kept, layers->size() - kept);
}

void upgrade_and_filter(NetParameter& net, const std::string& file) {
  upgrade_net(net, file);
  NetState state = net.state();
  if (!state.has_phase()) state.set_phase(TEST);
  ErrorList errors;
  filter_net(net, state, file, errors);
  errors.throw_if_any();
}

}  // namespace crema
