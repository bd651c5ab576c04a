// crema convert IN OUT: weights between .caffemodel, .caffemodel.h5 and .npz, mean files between
// .binaryproto and .npy. What IN is, is told from its content, what OUT becomes from its name.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <map>

#include "base/error.h"
#include "base/file.h"
#include "commands.h"
#include "io/file_kind.h"
#include "io/mean.h"
#include "io/npz.h"
#include "io/weights.h"
#include "io/wire.h"

namespace crema {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Arrays are named LAYER/INDEX, layers in the order of the archive.
WeightsFile weights_of_npz(const std::string& path) {
  WeightsFile weights;
  std::map<std::string, size_t> places;
  for (auto& [name, blob] : read_npz(path)) {
    const size_t slash = name.rfind('/');
    const std::string index = slash == std::string::npos ? "" : name.substr(slash + 1);
    require(!index.empty() && index.size() < 4 &&
                index.find_first_not_of("0123456789") == std::string::npos,
            path, ": array \"", name, "\": weights are named LAYER/INDEX");
    const std::string layer = name.substr(0, slash);
    const auto [place, is_new] = places.emplace(layer, weights.layers.size());
    if (is_new)
      weights.layers.push_back({.name = layer, .type = {}, .bottoms = {}, .tops = {}, .blobs = {}});
    std::vector<HostBlob>& blobs = weights.layers[place->second].blobs;
    const auto i = static_cast<size_t>(std::stoi(index));
    require(i == blobs.size(), path, ": layer \"", layer, "\": array ", blobs.size(),
            " is missing before ", i);
    blobs.push_back(std::move(blob));
  }
  return weights;
}

/// Whether the file holds one array (a .npy or a mean), not a net's weights.
bool is_array(const std::string& path, const std::string& head) {
  return ends_with(path, ".npy") || kind_of_bytes(head) == FileKind::blob;
}

void require_whole(const WeightsFile& weights, const std::string& path) {
  for (const LayerWeights& layer : weights.layers) {
    for (size_t i = 0; i < layer.blobs.size(); ++i) {
      require(!layer.blobs[i].is_missing(), path, ": layer \"", layer.name, "\": blob ", i,
              " is stored with another layer that shares it; only .h5 can leave it out");
    }
  }
}

void convert_array(const std::string& in, const std::string& out) {
  HostBlob blob;
  if (ends_with(in, ".npy")) {
    try {
      blob = read_npy(read_file(in));
    } catch (const Error& error) {
      const std::string text = error.what();
      throw text.rfind(in, 0) == 0 ? error : error.at(in);
    }
  } else {
    blob = read_mean(in);
  }
  if (ends_with(out, ".npy")) {
    // Readers of .npy means expect C, H, W.
    const bool has_batch_axis = blob.shape.axes() == 4 && blob.shape[0] == 1;
    write_file(out, write_npy(has_batch_axis ? blob.shape.slice(1, 4) : blob.shape, blob.data));
    return;
  }
  require(ends_with(out, ".binaryproto"), out, ": a mean file becomes .binaryproto or .npy");
  require(blob.shape.axes() == 3 || blob.shape.axes() == 4, in, ": has shape ", blob.shape,
          "; a mean file needs C, H and W");
  if (blob.shape.axes() == 3) blob.shape = {1, blob.shape[0], blob.shape[1], blob.shape[2]};
  write_mean(out, blob);
}

void convert_weights(const std::string& in, const std::string& out) {
  const bool is_npz = ends_with(in, ".npz");
  const WeightsFile weights = is_npz ? weights_of_npz(in) : read_weights(in);
  NetParameter net;
  net.set_name(weights.net_name);
  for (const LayerWeights& layer : weights.layers) {
    LayerParameter& to = *net.add_layer();
    to.set_name(layer.name);
    if (!layer.type.empty()) to.set_type(layer.type);
    for (const std::string& bottom : layer.bottoms) to.add_bottom(bottom);
    for (const std::string& top : layer.tops) to.add_top(top);
  }
  const auto blobs = [&](int i) { return weights.layers[static_cast<size_t>(i)].blobs; };
  if (ends_with(out, ".h5")) {
    write_weights_hdf5(out, net, blobs);
  } else if (ends_with(out, ".npz")) {
    require_whole(weights, in);
    NamedBlobs arrays;
    for (const LayerWeights& layer : weights.layers) {
      for (size_t i = 0; i < layer.blobs.size(); ++i) {
        arrays.emplace_back(str(layer.name, "/", i), layer.blobs[i]);
      }
    }
    write_npz(out, arrays);
  } else {
    require_whole(weights, in);
    write_weights_binary(out, net, blobs);
  }
  LOG(INFO) << "Wrote " << weights.layers.size() << " layers to " << out;
}

}  // namespace

int convert_command() {
  require(arguments().size() == 2, "crema convert needs two files: IN OUT");
  const std::string &in = arguments()[0], &out = arguments()[1];
  const bool is_known = ends_with(out, ".caffemodel") || ends_with(out, ".h5") ||
                        ends_with(out, ".npz") || ends_with(out, ".npy") ||
                        ends_with(out, ".binaryproto");
  require(is_known, out,
          ": weights become .caffemodel, .caffemodel.h5 or .npz, a mean .binaryproto or .npy");
  const std::string head(MappedFile(in).bytes().substr(0, 65536));
  const bool is_mean = is_array(in, head);
  const bool becomes_mean = ends_with(out, ".npy") || ends_with(out, ".binaryproto");
  require(!is_mean || becomes_mean, in, ": is one array, as means are, which cannot become ", out);
  const FileKind kind = kind_of_bytes(head);
  const bool is_weights =
      kind == FileKind::weights || kind == FileKind::hdf5 || ends_with(in, ".npz");
  require(is_mean || !becomes_mean || !is_weights, in,
          ": is a file of weights, which cannot become ", out);
  require(is_mean || !becomes_mean, in, ": is ", describe(kind),
          ", a mean (.binaryproto or .npy) is needed");
  if (is_mean) {
    convert_array(in, out);
  } else {
    convert_weights(in, out);
  }
  return 0;
}

}  // namespace crema
