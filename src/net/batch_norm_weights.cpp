// Shapes and edges decide; the numbers of the fields are the forks' own affair (see io/weights.h).
#include "net/batch_norm_weights.h"

#include <algorithm>

namespace crema {

BlobPointers ordered_blobs(const LayerParameter& layer, const LayerWeights& source) {
  BlobPointers blobs;
  for (const HostBlob& blob : source.blobs) blobs.push_back(&blob);
  const bool is_early = layer.type() == "BatchNorm" && blobs.size() == 5 &&
                        blobs[4]->shape.count() == 1 && blobs[2]->shape.count() > 1;
  if (is_early) std::rotate(blobs.begin(), blobs.begin() + 2, blobs.end());
  return blobs;
}

const LayerWeights* scale_of_file(const LayerWeights& norm, const WeightsFile& weights) {
  if (norm.tops.empty()) return nullptr;
  bool is_behind = false;
  for (const LayerWeights& layer : weights.layers) {
    if (is_behind && layer.bottoms.size() == 1 && layer.bottoms[0] == norm.tops[0]) {
      return layer.type == "Scale" ? &layer : nullptr;
    }
    is_behind = is_behind || &layer == &norm;
  }
  return nullptr;
}

}  // namespace crema
