// Names of the layer types that old files store as numbers.
#pragma once

#include <string>

namespace crema {

/// The type string ("SoftmaxWithLoss") for a V1LayerParameter::LayerType; "" for NONE and for
/// numbers that are none.
std::string modern_type(int v1_type);

}  // namespace crema
