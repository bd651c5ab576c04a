// cuDNN's handles and descriptors: which attribute takes which type and how many values.
#include <algorithm>
#include <cstdio>
#include <set>

#include "cuda_sim/cudnn_sim.h"
#include "cuda_sim/sim.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
  int card = 0;
};

namespace crema::cuda_sim {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

std::map<cudnnBackendDescriptor_t, std::shared_ptr<DnnDescriptor>>& descriptors() {
  static auto* const the = new std::map<cudnnBackendDescriptor_t, std::shared_ptr<DnnDescriptor>>;
  return *the;
}

std::set<const void*>& known_handles() {
  static auto* const the = new std::set<const void*>;
  return *the;
}

thread_local std::string last_message;

struct Rule {
  cudnnBackendDescriptorType_t owner;
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  int64_t least = 1, most = 1;
};

constexpr int64_t kAxes = CUDNN_DIM_MAX;

const Rule kRules[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 3, kAxes},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 3, kAxes},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
     CUDNN_TYPE_CONVOLUTION_MODE},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 1,
     3},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64,
     1, 3},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 1,
     3},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64,
     1, 3},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_TYPE_DOUBLE},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, CUDNN_TYPE_DOUBLE},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE,
     CUDNN_TYPE_DOUBLE},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_ELU_ALPHA, CUDNN_TYPE_DOUBLE},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1,
     CUDNN_TYPE_FLOAT},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2,
     CUDNN_TYPE_FLOAT},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 16},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
     CUDNN_TYPE_CHAR, 2, 1 << 20},
    {CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE},
    {CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 1,
     64},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
     CUDNN_TYPE_VOID_PTR, 1, 64},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR},
};

size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

const Rule* rule_of(cudnnBackendDescriptorType_t owner, cudnnBackendAttributeName_t name) {
  for (const Rule& rule : kRules) {
    if (rule.owner == owner && rule.name == name) return &rule;
  }
  return nullptr;
}

bool type_exists(cudnnBackendDescriptorType_t type) {
  return type == CUDNN_BACKEND_ENGINE_DESCRIPTOR ||
         std::any_of(std::begin(kRules), std::end(kRules),
                     [&](const Rule& rule) { return rule.owner == type; });
}

cudnnStatus_t set_attribute(DnnDescriptor& d, const Rule& rule, int64_t count, const void* array) {
  DnnValue value;
  value.count = count;
  const auto* bytes = static_cast<const uint8_t*>(array);
  value.bytes.assign(bytes, bytes + static_cast<size_t>(count) * bytes_of(rule.type));
  for (int64_t i = 0; rule.type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < count; ++i) {
    const DnnRef given = dnn_descriptor(static_cast<const cudnnBackendDescriptor_t*>(array)[i]);
    if (given == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "not a descriptor");
    if (!given->finalized) {
      return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "the descriptor given is not finalised");
    }
    value.descriptors.push_back(given);
  }
  if (rule.type == CUDNN_TYPE_HANDLE && !is_dnn_handle(*static_cast<void* const*>(array))) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "not a handle");
  }
  d.values[rule.name] = std::move(value);
  return CUDNN_STATUS_SUCCESS;
}

template <class T>
cudnnStatus_t give(const std::vector<T>& values, int64_t room, int64_t* count, void* array) {
  if (count != nullptr) *count = static_cast<int64_t>(values.size());
  const auto n = std::min(values.size(), static_cast<size_t>(std::max<int64_t>(room, 0)));
  if (array != nullptr && n > 0) std::memcpy(array, values.data(), n * sizeof(T));
  return CUDNN_STATUS_SUCCESS;
}

/// Turns a descriptor that the caller made into the engine or configuration that is asked for.
cudnnStatus_t fill(cudnnBackendDescriptor_t handle, cudnnBackendDescriptorType_t type, int engine,
                   const DnnRef& graph) {
  const std::shared_ptr<DnnDescriptor> d = dnn_descriptor(handle);
  if (d == nullptr || d->type != type) {
    return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "an element is of another kind");
  }
  d->engine = engine;
  d->values[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = {1, {}, {graph}};
  d->finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t give_configurations(const DnnDescriptor& d, int64_t room, int64_t* count,
                                  void* array) {
  const auto n = static_cast<int64_t>(d.engines.size());
  if (count != nullptr) *count = array == nullptr ? n : std::min(n, room);
  for (int64_t i = 0; array != nullptr && i < std::min(n, room); ++i) {
    const cudnnStatus_t status =
        fill(static_cast<cudnnBackendDescriptor_t*>(array)[i], CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
             d.engines[static_cast<size_t>(i)], d.ref(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
    if (status != CUDNN_STATUS_SUCCESS) return status;
  }
  return CUDNN_STATUS_SUCCESS;
}

/// What is not an attribute that was set, but follows.
cudnnStatus_t get_derived(const DnnDescriptor& d, cudnnBackendAttributeName_t name, int64_t room,
                          int64_t* count, void* array) {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      return give_configurations(d, room, count, array);
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      if (room < 1 || array == nullptr) break;
      if (count != nullptr) *count = 1;
      return fill(*static_cast<cudnnBackendDescriptor_t*>(array), CUDNN_BACKEND_ENGINE_DESCRIPTOR,
                  d.engine, d.ref(CUDNN_ATTR_ENGINE_OPERATION_GRAPH));
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return give(dnn_engine(d.engine).notes, room, count, array);
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      return give(std::vector<cudnnBackendBehaviorNote_t>{}, room, count, array);
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return give(std::vector<int64_t>{d.engine}, room, count, array);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return give(
          std::vector<int64_t>{dnn_workspace(d.engine, *d.ref(CUDNN_ATTR_ENGINE_OPERATION_GRAPH))},
          room, count, array);
    default:
      break;
  }
  return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the stand-in does not give this attribute");
}

cudnnBackendDescriptorType_t owner_of_derived(cudnnBackendAttributeName_t name) {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      return CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      return CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
    default:
      return CUDNN_BACKEND_ENGINE_DESCRIPTOR;
  }
}

}  // namespace

cudnnStatus_t refuse(cudnnStatus_t status, const std::string& message) {
  last_message = message;
  return status;
}

std::shared_ptr<DnnDescriptor> dnn_descriptor(cudnnBackendDescriptor_t handle) {
  const auto it = descriptors().find(handle);
  return it == descriptors().end() ? nullptr : it->second;
}

bool is_dnn_handle(const void* handle) { return known_handles().count(handle) != 0; }

}  // namespace crema::cuda_sim

using namespace crema::cuda_sim;

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  const Lock lock(big_lock());
  if (handle == nullptr)
    return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no place for a handle");
  if (forbid_in_capture() != cudaSuccess) {
    return refuse(CUDNN_STATUS_INTERNAL_ERROR, "cudnnCreate during capture");
  }
  *handle = new cudnnContext{nullptr, current_card()};
  known_handles().insert(*handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  const Lock lock(big_lock());
  if (known_handles().erase(handle) == 0) return refuse(CUDNN_STATUS_BAD_PARAM, "not a handle");
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  const Lock lock(big_lock());
  if (!is_dnn_handle(handle)) return refuse(CUDNN_STATUS_BAD_PARAM, "not a handle");
  const StreamRef found = stream_of(stream);
  if (found == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "not a stream");
  if (found->card != handle->card) {
    return refuse(CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH, "the stream is another card's");
  }
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  const Lock lock(big_lock());
  if (!is_dnn_handle(handle)) return refuse(CUDNN_STATUS_BAD_PARAM, "not a handle");
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion() { return CUDNN_VERSION; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  thread_local char text[48];
  std::snprintf(text, sizeof(text), "cuDNN status %d", static_cast<int>(status));
  return text;
}

void cudnnGetLastErrorString(char* message, size_t room) {
  if (message == nullptr || room == 0) return;
  std::snprintf(message, room, "%s", last_message.c_str());
  last_message.clear();
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* handle) {
  const Lock lock(big_lock());
  if (handle == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no place for it");
  if (!type_exists(type)) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "no such descriptor");
  const auto descriptor = std::make_shared<DnnDescriptor>();
  descriptor->type = type;
  *handle = descriptor.get();
  descriptors()[*handle] = descriptor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t handle) {
  const Lock lock(big_lock());
  if (handle != nullptr && descriptors().erase(handle) == 0) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "not a descriptor");
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
  const Lock lock(big_lock());
  const std::shared_ptr<DnnDescriptor> d = dnn_descriptor(handle);
  if (d == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "not a descriptor");
  const cudnnStatus_t status = finalize(*d);
  if (status == CUDNN_STATUS_SUCCESS) d->finalized = true;
  return status;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* array) {
  const Lock lock(big_lock());
  const std::shared_ptr<DnnDescriptor> d = dnn_descriptor(handle);
  if (d == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "not a descriptor");
  if (d->finalized) return refuse(CUDNN_STATUS_NOT_INITIALIZED, "the descriptor is finalised");
  const Rule* rule = rule_of(d->type, name);
  if (rule == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "no attribute of this descriptor");
  if (rule->type != type) {
    return refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "the attribute has another type");
  }
  if (array == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no values");
  if (count < rule->least || count > rule->most) {
    return refuse(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                  "the attribute takes another number of values");
  }
  return set_attribute(*d, *rule, count, array);
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const handle,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room,
                                       int64_t* count, void* array) {
  const Lock lock(big_lock());
  const std::shared_ptr<DnnDescriptor> d = dnn_descriptor(handle);
  if (d == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "not a descriptor");
  if (!d->finalized) {
    return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "the descriptor is not finalised");
  }
  const auto it = d->values.find(name);
  const Rule* rule = rule_of(d->type, name);
  if (it != d->values.end() && rule != nullptr && it->second.descriptors.empty()) {
    if (rule->type != type) {
      return refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "the attribute has another type");
    }
    if (count != nullptr) *count = it->second.count;
    const auto n = static_cast<size_t>(std::min(room, it->second.count)) * bytes_of(type);
    if (array != nullptr) std::memcpy(array, it->second.bytes.data(), n);
    return CUDNN_STATUS_SUCCESS;
  }
  if (d->type != owner_of_derived(name)) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "no attribute of this descriptor");
  }
  return get_derived(*d, name, room, count, array);
}
