// Reading and writing weights. Binary files are walked field by field: numbers that a fork gave
// another meaning are never looked at.
#include "io/weights.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "io/file_kind.h"
#include "io/hdf5.h"
#include "io/legacy_types.h"
#include "io/wire.h"

namespace crema {
namespace {

constexpr int kNetName = 1, kNetLayer = 100, kNetOldLayer = 2;
constexpr int kLayerBlobs = 7;

// Field numbers of a layer in one of the three syntaxes; type_name or type_number is 0.
struct LayerFields {
  int name, type_name, type_number, bottom, top, blobs, inner;
};
constexpr LayerFields kV2{1, 2, 0, 3, 4, kLayerBlobs, 0};
constexpr LayerFields kV1{4, 0, 5, 2, 3, 6, 1};
constexpr LayerFields kV0{1, 2, 0, 0, 0, 50, 0};

HostBlob read_blob(std::string_view bytes) {
  require(bytes.size() <= static_cast<size_t>(kMaxBlobCount), "exceeds 2 GB");
  BlobProto proto;
  require(proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())), "is damaged");
  return from_proto(proto);
}

void read_layer(std::string_view bytes, const LayerFields& fields, LayerWeights* layer) {
  WireReader reader(bytes);
  std::vector<std::string_view> blobs;
  while (const auto field = reader.next()) {
    const int number = field->number;
    if (field->type == WireType::varint) {
      if (number == fields.type_number) layer->type = modern_type(static_cast<int>(field->value));
    } else if (field->type == WireType::bytes) {
      if (number == fields.name) layer->name = field->bytes;
      if (number == fields.type_name) layer->type = field->bytes;
      if (number == fields.bottom) layer->bottoms.emplace_back(field->bytes);
      if (number == fields.top) layer->tops.emplace_back(field->bytes);
      if (number == fields.inner) read_layer(field->bytes, kV0, layer);
      if (number == fields.blobs) blobs.push_back(field->bytes);
    }
  }
  for (std::string_view blob : blobs) {
    try {
      layer->blobs.push_back(read_blob(blob));
    } catch (const Error& error) {
      fail("layer \"", layer->name, "\": blob ", layer->blobs.size(), " ", error.what());
    }
  }
}

WeightsFile read_binary(std::string_view bytes) {
  WeightsFile file;
  WireReader reader(bytes);
  while (!reader.is_padding()) {
    const auto field = reader.next();
    if (!field) break;
    if (field->type != WireType::bytes) continue;
    if (field->number == kNetName) file.net_name = field->bytes;
    if (field->number != kNetLayer && field->number != kNetOldLayer) continue;
    read_layer(field->bytes, field->number == kNetLayer ? kV2 : kV1, &file.layers.emplace_back());
  }
  require(!file.layers.empty(), "holds no layers, a weights file (.caffemodel) is needed");
  return file;
}

// Index of a blob from the last part of its path, or -1 where that is no number.
int blob_index(const std::string& word) {
  if (word.empty() || word.size() > 6) return -1;
  const bool is_number =
      std::all_of(word.begin(), word.end(), [](char c) { return '0' <= c && c <= '9'; });
  return is_number ? std::stoi(word) : -1;
}

WeightsFile read_hdf5(const std::string& path) {
  const Hdf5File file = Hdf5File::open(path);
  if (!file.has("data")) {
    fail(path, ": is ", file.has("history") ? "a solver state" : "an HDF5 file without /data",
         ", a weights file (.caffemodel.h5) is needed");
  }
  WeightsFile weights;
  std::map<std::string, size_t> at;
  auto layer_of = [&](const std::string& name) -> LayerWeights& {
    const auto [it, is_new] = at.emplace(name, weights.layers.size());
    if (is_new) weights.layers.emplace_back().name = name;
    return weights.layers[it->second];
  };
  for (const std::string& dataset : file.datasets("data")) {
    const size_t slash = dataset.rfind('/');
    const int index = blob_index(dataset.substr(slash + 1));
    require(slash != std::string::npos && index >= 0, path, ": data set \"data/", dataset,
            "\": the name LAYER/INDEX is needed");
    LayerWeights& layer = layer_of(dataset.substr(0, slash));
    if (layer.blobs.size() <= static_cast<size_t>(index)) {
      layer.blobs.resize(static_cast<size_t>(index) + 1, HostBlob{{1}, {}, {}});
    }
    HostBlob& blob = layer.blobs[static_cast<size_t>(index)];
    blob = file.read("data/" + dataset);
    if (file.has("diff/" + dataset)) blob.diff = file.read("diff/" + dataset).data;
  }
  for (const std::string& group : file.groups("data")) {  // layers without blobs
    const auto is_below = [&](const auto& known) { return known.first.rfind(group + "/", 0) == 0; };
    if (std::none_of(at.begin(), at.end(), is_below)) layer_of(group);
  }
  return weights;
}

// The parts of a layer that are written: all but blobs and what belongs to a reading.
std::string layer_head(const LayerParameter& layer) {
  LayerParameter head = layer;
  head.clear_blobs();
  head.clear_source_location();
  return head.SerializeAsString();
}

void write_layer(WireWriter& out, const LayerParameter& layer, const std::vector<HostBlob>& blobs,
                 bool with_diff) {
  const std::string head = layer_head(layer);
  uint64_t size = head.size();
  for (const HostBlob& blob : blobs) {
    const uint64_t content = blob_size(blob, with_diff);
    size += header_size(kLayerBlobs, content) + content;
  }
  require(size <= static_cast<uint64_t>(kMaxBlobCount),
          "its blobs exceed the 2 GB that the binary ",
          "format can hold: use snapshot_format: HDF5");
  out.begin(kNetLayer, size);
  out.raw(head.data(), head.size());
  for (const HostBlob& blob : blobs) write_blob(out, kLayerBlobs, blob, with_diff);
}

}  // namespace

WeightsFile read_weights(const std::string& path) {
  const MappedFile file(path);
  const FileKind kind = kind_of_bytes(file.bytes().substr(0, 1 << 16));
  if (kind == FileKind::hdf5 || is_hdf5(path)) return read_hdf5(path);
  require(kind == FileKind::weights, path, ": is ", describe(kind),
          ", a weights file (.caffemodel) is needed");
  try {
    return read_binary(file.bytes());
  } catch (const Error& error) {
    const std::string what = error.what();
    if (what.rfind("layer", 0) == 0) throw error.at(path);
    fail(path, ": ", what);
  }
}

void write_weights_binary(const std::string& path, const NetParameter& net, const BlobSource& blobs,
                          bool with_diff) {
  NetParameter head = net;
  head.clear_layer();
  head.clear_layers();
  write_atomically(path, [&](const std::string& temporary) {
    WireWriter out(temporary);
    const std::string bytes = head.SerializeAsString();
    out.raw(bytes.data(), bytes.size());
    for (int i = 0; i < net.layer_size(); ++i) {
      try {
        write_layer(out, net.layer(i), blobs(i), with_diff);
      } catch (const Error& error) {
        throw error.at(str("layer \"", net.layer(i).name(), "\""));
      }
    }
    out.close();
  });
}

void write_weights_hdf5(const std::string& path, const NetParameter& net, const BlobSource& blobs,
                        bool with_diff) {
  write_atomically(path, [&](const std::string& temporary) {
    Hdf5File file = Hdf5File::create(temporary);
    file.make_group("data");
    if (with_diff) file.make_group("diff");
    std::set<std::string> names;
    for (int i = 0; i < net.layer_size(); ++i) {
      const std::string& name = net.layer(i).name();
      const std::vector<HostBlob> values = blobs(i);
      if (name.empty() && values.empty()) continue;
      require(!name.empty(), "a layer without a name has parameters: HDF5 files need one");
      require(names.insert(name).second || values.empty(), "two layers have the name \"", name,
              "\": HDF5 files can hold one");
      file.make_group("data/" + name);
      for (size_t k = 0; k < values.size(); ++k) {
        if (values[k].is_missing()) continue;
        const std::string place = str(name, "/", k);
        file.write("data/" + place, values[k].shape, values[k].data.data());
        if (!with_diff || values[k].diff.empty()) continue;
        file.write("diff/" + place, values[k].shape, values[k].diff.data());
      }
    }
    file.close();
  });
}

}  // namespace crema
