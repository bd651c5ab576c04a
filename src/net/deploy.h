// Derives the net that is used from the net that was trained: inputs instead of data layers,
// probabilities instead of losses, nothing that only training needs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/shape.h"
#include "crema.pb.h"

namespace crema {

/// How the trained net's pictures were made, as far as its file and its source tell.
struct Preprocessing {
  std::string input;                        // the blob
  int resize_height = 0, resize_width = 0;  // of the picture before it is cropped; 0: not known
  TransformationParameter transform;        // without what is drawn (feed/augmentation.h)
  std::string source;                       // of the data layer; may be empty
};

struct DeployNet {
  NetParameter net;
  std::optional<Preprocessing> preprocessing;  // nothing where no data layer makes pictures
  std::vector<std::string> outputs;            // blobs
  std::vector<std::string> notes;              // what was assumed or left out, a sentence each
};

/// Whether a layer reads records from files or is handed them; layers without bottoms of a type
/// that is not built in (a fork's data layer) are taken for such.
bool is_data_layer(const LayerParameter& layer);

/// Shapes of a data layer's tops with a batch of `batch`, from its source; where that cannot be
/// opened, from crop_size and its kin, with a note. Throws Error where neither tells.
Shapes shapes_of_data_layer(const LayerParameter& layer, int64_t batch,
                            std::vector<std::string>* notes);

/// The deploy net of a train_val net whose state has the phase TEST. `input`: shape of the input
/// instead of what the source tells; axis 0 is the batch. file stands for the net in messages.
/// A net that has Input layers already keeps them. Throws Error for a broken net, for one without
/// data layers, and where nothing is left that could be an output.
///
/// Heads are the loss layers of the largest loss weight: SoftmaxWithLoss and InfogainLoss become
/// Softmax, SigmoidCrossEntropyLoss becomes Sigmoid, MultiBoxLoss becomes Softmax and
/// DetectionOutput, of others their first bottom is an output. Layers that no head depends on go.
DeployNet derive_deploy(const NetParameter& net, const std::string& file,
                        const std::optional<Shape>& input = std::nullopt);

/// The net with each data layer replaced by an Input layer of the same tops and
/// shapes_of_data_layer with the layer's own batch size.
NetParameter with_inputs(const NetParameter& net, const std::string& file,
                         std::vector<std::string>* notes);

}  // namespace crema
