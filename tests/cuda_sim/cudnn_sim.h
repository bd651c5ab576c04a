// cuDNN's backend descriptors as the stand-in keeps them: attributes by name, checked against a
// table when they are set, and as a whole when the descriptor is finalised.
#pragma once

#include <cudnn.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda_sim/numbers.h"

namespace crema::cuda_sim {

struct DnnDescriptor;
using DnnRef = std::shared_ptr<const DnnDescriptor>;

struct DnnValue {
  int64_t count = 0;
  std::vector<uint8_t> bytes;
  std::vector<DnnRef> descriptors;
};

struct DnnDescriptor {
  cudnnBackendDescriptorType_t type{};
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, DnnValue> values;
  std::vector<int> engines;  // of a heuristics descriptor: what it found, best first
  int engine = -1;           // of an engine, a configuration and a plan

  bool has(cudnnBackendAttributeName_t name) const { return values.count(name) != 0; }
  template <class T>
  std::vector<T> list(cudnnBackendAttributeName_t name) const {
    const auto it = values.find(name);
    if (it == values.end()) return {};
    std::vector<T> list(static_cast<size_t>(it->second.count));
    if (!list.empty()) std::memcpy(list.data(), it->second.bytes.data(), list.size() * sizeof(T));
    return list;
  }
  template <class T>
  T one(cudnnBackendAttributeName_t name, T otherwise) const {
    const std::vector<T> values_of_name = list<T>(name);
    return values_of_name.empty() ? otherwise : values_of_name[0];
  }
  DnnRef ref(cudnnBackendAttributeName_t name) const {
    const auto it = values.find(name);
    return it == values.end() || it->second.descriptors.empty() ? nullptr
                                                                : it->second.descriptors[0];
  }
  const std::vector<DnnRef>& refs(cudnnBackendAttributeName_t name) const {
    static const std::vector<DnnRef> none;
    const auto it = values.find(name);
    return it == values.end() ? none : it->second.descriptors;
  }
};

/// Remembers the message and returns the status.
cudnnStatus_t refuse(cudnnStatus_t status, const std::string& message);

struct DnnTensor {
  explicit DnnTensor(const DnnDescriptor& d);
  int64_t id = 0, alignment = 0;
  Number type = Number::none;
  bool is_virtual = false;
  std::vector<int64_t> sizes, strides;
  int64_t count() const;
  size_t span_bytes() const;
  bool is_nhwc() const;
};

enum class DnnDirection : uint8_t { forward, data, filter };
/// A convolution operation's parts, whatever its direction.
struct DnnConvolution {
  explicit DnnConvolution(const DnnDescriptor& operation);
  static bool is_one(const DnnDescriptor& operation);
  DnnDirection direction;
  DnnRef x_ref, w_ref, y_ref;
  DnnTensor x, w, y;
  std::vector<int64_t> pad, post_pad, stride, dilation;
  bool flipped = false;
  float alpha = 1, beta = 0;
};

/// An algorithm of the stand-in.
struct DnnEngine {
  std::vector<cudnnBackendNumericalNote_t> notes;
  bool tensor_cores = false;
  int64_t workspace_factor = 0;  // times w's elements * 4 bytes
};
const DnnEngine& dnn_engine(int index);
int64_t dnn_workspace(int engine, const DnnDescriptor& graph);
/// Engines for a finalised graph, best first.
std::vector<int> dnn_engines(const DnnDescriptor& graph, cudnnBackendHeurMode_t mode);

/// Checks a descriptor as a whole; fills in what follows from its attributes.
cudnnStatus_t finalize(DnnDescriptor& d);
std::shared_ptr<DnnDescriptor> dnn_descriptor(cudnnBackendDescriptor_t handle);
bool is_dnn_handle(const void* handle);

}  // namespace crema::cuda_sim
