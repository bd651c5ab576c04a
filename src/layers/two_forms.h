// One type name that two forks gave to two layers: the fields, bottoms and tops that are written
// decide.
#pragma once

#include "layers/layer.h"

namespace crema {

/// Registers `type`: First where is_first(param), else Second.
template <class First, class Second>
struct TwoFormsRegistrar {
  TwoFormsRegistrar(const char* type, bool (*is_first)(const LayerParameter&)) {
    layer_registry().add(type,
                         [is_first](const LayerParameter& param,
                                    const LayerContext& context) -> std::unique_ptr<Layer> {
                           if (is_first(param)) return std::make_unique<First>(param, context);
                           return std::make_unique<Second>(param, context);
                         });
  }
};

}  // namespace crema
