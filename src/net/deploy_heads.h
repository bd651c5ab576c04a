// What stands in the place of a loss layer in a net that is used.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "crema.pb.h"

namespace crema {

/// Softmax or Sigmoid for the losses that take scores; nothing where the loss's first bottom is the
/// output. name: of the layer and its top.
std::optional<LayerParameter> head_of(const LayerParameter& loss, const std::string& name);

/// For MultiBoxLoss: probabilities of its scores, and boxes with the thresholds that SSD's scripts
/// write. name: of the last layer, DetectionOutput, and its top.
std::vector<LayerParameter> detection_head(const LayerParameter& loss, const std::string& name);

}  // namespace crema
