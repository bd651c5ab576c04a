// What one step of a net must cost, counted from shapes alone: arithmetic and bytes. The count
// depends on the net as it is written, never on what the passes made of it.
#pragma once

#include "crema.pb.h"
#include "net/net.h"

namespace crema {

/// One layer's share of it. backward_operations: of the gradients that are wanted.
struct LayerCost {
  double forward_operations = 0, backward_operations = 0;
  double forward_bytes = 0, backward_bytes = 0;  // of training
};

struct StepCost {
  /// Multiplications and additions of convolutions and inner products, done directly. training:
  /// forward, weight gradient and data gradient, each where it is wanted.
  double forward_operations = 0, training_operations = 0;
  /// Bytes that layers read and write when each blob and parameter goes through memory once per
  /// direction (batch normalisation in training: its inputs twice). Activations, Scale, Bias and
  /// Dropout count as part of their neighbour.
  double forward_bytes = 0, training_bytes = 0;
  /// The part of training_bytes that is batch normalisation's.
  double norm_bytes = 0;
  /// Reading gradient, weight and history and writing the last two, of SGD.
  double update_bytes = 0;
  /// Reading the weights and writing them in the plans' order, once per update.
  double packing_bytes = 0;
};

LayerCost count_layer(const Net& net, const LayerParameter& layer);

/// param: the upgraded and filtered net that `net` was built from.
StepCost count_cost(const Net& net, const NetParameter& param);

}  // namespace crema
