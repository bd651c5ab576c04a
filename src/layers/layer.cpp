// The registry of layer types, and which fork a type that is missing comes from.
#include "layers/layer.h"

#include "io/fork_layers.h"

namespace crema {
namespace {

/// " (a layer of FORK)" where the fork is known; types that differ in case only are ours
/// misspelled.
std::string origin_of(const std::string& type) {
  const std::string fork = fork_of_layer(type);
  return fork.empty() ? "" : str(" (a layer of ", fork, ')');
}

}  // namespace

Registry<LayerFactory>& layer_registry() {
  static Registry<LayerFactory> registry;
  return registry;
}

std::unique_ptr<Layer> make_layer(const LayerParameter& param, const LayerContext& context) {
  require(!param.type().empty(), "type: is missing, or one that this syntax has no word for");
  const LayerFactory* factory = layer_registry().find(param.type());
  if (!factory) {
    const std::string origin = origin_of(param.type());
    fail("unknown layer type \"", param.type(), '"', origin,
         origin.empty() ? did_you_mean(param.type(), layer_registry().names()) : "");
  }
  return (*factory)(param, context);
}

}  // namespace crema
