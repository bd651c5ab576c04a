// BatchNorm has 3 parameters, and a Scale layer behind it 2; with NVCaffe's scale_bias it has
// all 5. Files of either kind are read into nets of the other.
#pragma once

#include <vector>

#include "crema.pb.h"
#include "io/weights.h"

namespace crema {

using BlobPointers = std::vector<const HostBlob*>;

/// The blobs of a layer of the file, in the order of the net. Early NVCaffe wrote scale, bias,
/// mean, variance, factor: told by the factor, the only blob of one value, standing last.
BlobPointers ordered_blobs(const LayerParameter& layer, const LayerWeights& source);

/// The Scale layer of the file that works on the top of `norm`, or nullptr. Files that do not store
/// edges (HDF5) have none.
const LayerWeights* scale_of_file(const LayerWeights& norm, const WeightsFile& weights);

}  // namespace crema
