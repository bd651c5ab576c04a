// Weights files: .caffemodel (binary NetParameter of any age, of any fork) and .caffemodel.h5. Only
// name, type, bottom, top and blobs of a layer are read, since forks reuse the other field numbers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "crema.pb.h"
#include "io/blob.h"

namespace crema {

struct LayerWeights {
  std::string name;
  /// As in a V2 prototxt ("Convolution"), also for files with the old enum. Empty in HDF5 files.
  std::string type;
  std::vector<std::string> bottoms, tops;
  /// In HDF5 files a blob may be missing (HostBlob::is_missing).
  std::vector<HostBlob> blobs;
};

struct WeightsFile {
  std::string net_name;
  std::vector<LayerWeights> layers;
};

/// Reads weights; the format is told from the content. Throws Error "PATH: ..." for a file that is
/// missing, empty, truncated, of another kind (text, solver state, mean) or holds a blob whose
/// values do not fit its shape.
WeightsFile read_weights(const std::string& path);

/// Gives the blobs of layer(i) of the net that is being written; called once for each i in order,
/// so that one layer at a time is held in memory twice.
using BlobSource = std::function<std::vector<HostBlob>(int layer)>;

/// Writes a .caffemodel: net with the blobs of each layer (blobs already in net, V1 layers and
/// source_location are left out). Streamed: the file may exceed 2 GB, one layer may not. On failure
/// throws Error and path keeps its old content.
void write_weights_binary(const std::string& path, const NetParameter& net, const BlobSource& blobs,
                          bool with_diff = false);

/// Writes a .caffemodel.h5: /data/LAYER/INDEX (and /diff/LAYER/INDEX); a name with '/' makes nested
/// groups. Missing blobs (shared parameters of another owner) are left out. On failure throws Error
/// and path keeps its old content.
void write_weights_hdf5(const std::string& path, const NetParameter& net, const BlobSource& blobs,
                        bool with_diff = false);

}  // namespace crema
