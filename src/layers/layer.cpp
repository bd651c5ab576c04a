// The registry of layer types.
#include "layers/layer.h"

namespace crema {

Registry<LayerFactory>& layer_registry() {
  static Registry<LayerFactory> registry;
  return registry;
}

std::unique_ptr<Layer> make_layer(const LayerParameter& param, const LayerContext& context) {
  const LayerFactory* factory = layer_registry().find(param.type());
  require(factory != nullptr, "unknown layer type \"", param.type(), '"',
          did_you_mean(param.type(), layer_registry().names()));
  return (*factory)(param, context);
}

}  // namespace crema
