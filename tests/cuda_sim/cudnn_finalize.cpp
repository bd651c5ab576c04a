// Whether descriptors make sense as a whole, and the engines that the stand-in has for a graph:
//   0  tensor cores: f16 and bf16, and f32 rounded to TF32; nhwc only; fuses what follows;
//   workspace 1  no tensor cores: any layout; a filter gradient takes a workspace for partial sums
//   2  the same without a workspace, in no fixed order (gradients only)
#include <algorithm>
#include <set>

#include "cuda_sim/cudnn_sim.h"
#include "cuda_sim/sim.h"

namespace crema::cuda_sim {
namespace {

Number number_of(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT      ? Number::f32
         : type == CUDNN_DATA_HALF     ? Number::f16
         : type == CUDNN_DATA_BFLOAT16 ? Number::bf16
                                       : Number::none;
}

cudnnStatus_t missing(const char* what) {
  return refuse(CUDNN_STATUS_BAD_PARAM, std::string(what) + " was not set");
}

bool all_at_least(const std::vector<int64_t>& values, int64_t least) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v >= least; });
}

cudnnStatus_t finalize_tensor(const DnnDescriptor& d) {
  for (const auto name :
       {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_DIMENSIONS,
        CUDNN_ATTR_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_UNIQUE_ID}) {
    if (!d.has(name)) return missing("a tensor's attribute");
  }
  const DnnTensor tensor(d);
  if (tensor.type == Number::none) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "a type that the stand-in has not");
  }
  if (tensor.sizes.size() != tensor.strides.size()) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "as many strides as sizes");
  }
  if (!all_at_least(tensor.sizes, 1) || !all_at_least(tensor.strides, 1)) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "sizes and strides are at least 1");
  }
  const auto size = static_cast<int64_t>(size_of(tensor.type));
  const bool power = tensor.alignment > 0 && (tensor.alignment & (tensor.alignment - 1)) == 0;
  if (!power || tensor.alignment < size) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "the alignment is a power of two, an element at least");
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_convolution(const DnnDescriptor& d) {
  const auto axes = static_cast<size_t>(d.one<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0));
  if (axes < 2 || axes > 3) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "two or three spatial axes");
  for (const auto name :
       {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
        CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS}) {
    const std::vector<int64_t> values = d.list<int64_t>(name);
    const bool is_padding =
        name == CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS || name == CUDNN_ATTR_CONVOLUTION_POST_PADDINGS;
    if (values.size() != axes) return refuse(CUDNN_STATUS_BAD_PARAM, "one value per spatial axis");
    if (!all_at_least(values, is_padding ? 0 : 1)) {
      return refuse(CUDNN_STATUS_BAD_PARAM, "paddings from 0, strides and dilations from 1");
    }
  }
  if (d.one(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_INT8) != CUDNN_DATA_FLOAT) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the stand-in computes in float");
  }
  if (!d.has(CUDNN_ATTR_CONVOLUTION_CONV_MODE)) return missing("the mode");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_operation(const DnnDescriptor& d) {
  const DnnConvolution conv(d);
  const size_t axes = conv.pad.size();
  for (const DnnTensor* t : {&conv.x, &conv.w, &conv.y}) {
    if (t->sizes.size() != axes + 2) {
      return refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "tensors of N, C and the spatial axes");
    }
  }
  const int64_t channels = conv.x.sizes[1], per_group = conv.w.sizes[1];
  const bool grouped = channels % per_group == 0 && conv.w.sizes[0] % (channels / per_group) == 0;
  if (!grouped || conv.y.sizes[1] != conv.w.sizes[0] || conv.y.sizes[0] != conv.x.sizes[0]) {
    return refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "channels or pictures do not fit");
  }
  for (size_t i = 0; i < axes; ++i) {
    const int64_t reach = conv.dilation[i] * (conv.w.sizes[i + 2] - 1) + 1;
    const int64_t room = conv.x.sizes[i + 2] + conv.pad[i] + conv.post_pad[i] - reach;
    if (room < 0 || conv.y.sizes[i + 2] != room / conv.stride[i] + 1) {
      return refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                    "y's size along an axis does not follow from x and w");
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

bool mode_is_known(cudnnPointwiseMode_t mode) {
  return mode == CUDNN_POINTWISE_ADD || mode == CUDNN_POINTWISE_MUL ||
         mode == CUDNN_POINTWISE_RELU_FWD || mode == CUDNN_POINTWISE_ELU_FWD ||
         mode == CUDNN_POINTWISE_IDENTITY;
}

cudnnStatus_t finalize_pointwise(const DnnDescriptor& d) {
  if (!d.has(CUDNN_ATTR_POINTWISE_MODE)) return missing("the mode");
  if (!mode_is_known(d.one(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD))) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "a mode that the stand-in has not");
  }
  if (d.one(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_INT8) != CUDNN_DATA_FLOAT) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the stand-in computes in float");
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_pointwise_operation(const DnnDescriptor& d) {
  const DnnRef how = d.ref(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  const DnnRef x = d.ref(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  const DnnRef y = d.ref(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  const DnnRef b = d.ref(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  if (how == nullptr || x == nullptr || y == nullptr) return missing("a part of the operation");
  const auto mode = how->one(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD);
  const bool takes_two = mode == CUDNN_POINTWISE_ADD || mode == CUDNN_POINTWISE_MUL;
  if (takes_two != (b != nullptr)) return refuse(CUDNN_STATUS_BAD_PARAM, "one input or two");
  if (DnnTensor(*x).sizes != DnnTensor(*y).sizes) {
    return refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "x and y differ in shape");
  }
  if (b == nullptr) return CUDNN_STATUS_SUCCESS;
  const std::vector<int64_t> to = DnnTensor(*y).sizes, from = DnnTensor(*b).sizes;
  bool fits = from.size() == to.size();
  for (size_t i = 0; fits && i < to.size(); ++i) fits = from[i] == to[i] || from[i] == 1;
  if (!fits) return refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "b does not spread over y");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_graph(const DnnDescriptor& d) {
  const std::vector<DnnRef>& operations = d.refs(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (operations.empty()) return missing("the operations");
  if (!DnnConvolution::is_one(*operations[0])) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "the first operation convolves");
  }
  const DnnConvolution conv(*operations[0]);
  if (operations.size() > 1 && conv.direction != DnnDirection::forward) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "nothing follows a gradient");
  }
  const DnnTensor* last = conv.direction == DnnDirection::forward ? &conv.y
                          : conv.direction == DnnDirection::data  ? &conv.x
                                                                  : &conv.w;
  std::set<int64_t> ids = {conv.x.id, conv.w.id, conv.y.id};
  size_t tensors = 3;
  DnnTensor result = *last;
  for (size_t i = 1; i < operations.size(); ++i) {
    const DnnDescriptor& next = *operations[i];
    if (next.type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {
      return refuse(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "only pointwise operations follow");
    }
    const DnnTensor x(*next.ref(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
    if (x.id != result.id || !result.is_virtual) {
      return refuse(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN,
                    "each takes the virtual result of the one before");
    }
    result = DnnTensor(*next.ref(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    ids.insert(result.id);
    ++tensors;
    if (const DnnRef b = next.ref(CUDNN_ATTR_OPERATION_POINTWISE_BDESC)) {
      if (DnnTensor(*b).is_virtual) {
        return refuse(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "b has memory");
      }
      ids.insert(DnnTensor(*b).id);
      ++tensors;
    }
  }
  if (ids.size() != tensors) {
    return refuse(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, "two tensors have one number");
  }
  if (result.is_virtual) return refuse(CUDNN_STATUS_BAD_PARAM, "the last result has memory");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_heuristics(DnnDescriptor& d) {
  const DnnRef graph = d.ref(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  if (graph == nullptr || !d.has(CUDNN_ATTR_ENGINEHEUR_MODE)) return missing("the graph or mode");
  d.engines = dnn_engines(*graph, d.one(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_plan(DnnDescriptor& d) {
  const DnnRef config = d.ref(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  if (config == nullptr || config->engine < 0) return missing("the engine");
  d.engine = config->engine;
  d.values[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = {
      1, {}, {config->ref(CUDNN_ATTR_ENGINE_OPERATION_GRAPH)}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_pack(const DnnDescriptor& d) {
  const std::vector<int64_t> ids = d.list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  if (ids.size() != d.list<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).size()) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "as many pointers as numbers");
  }
  if (std::set<int64_t>(ids.begin(), ids.end()).size() != ids.size()) {
    return refuse(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, "a number comes twice");
  }
  return CUDNN_STATUS_SUCCESS;
}

bool has_parts(const DnnDescriptor& d) {
  int parts = 0;
  for (const auto& [name, value] : d.values) parts += value.descriptors.empty() ? 0 : 1;
  return parts == 4;
}

}  // namespace

const DnnEngine& dnn_engine(int index) {
  static const DnnEngine engines[] = {
      {{CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}, true, 1},
      {{}, false, 2},
      {{CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, false, 0},
  };
  return engines[index];
}

int64_t dnn_workspace(int engine, const DnnDescriptor& graph) {
  const DnnConvolution conv(*graph.refs(CUDNN_ATTR_OPERATIONGRAPH_OPS)[0]);
  if (engine == 1 && conv.direction != DnnDirection::filter) return 0;
  const int64_t bytes = dnn_engine(engine).workspace_factor * conv.w.count() * 4;
  return (bytes + 255) / 256 * 256;
}

std::vector<int> dnn_engines(const DnnDescriptor& graph, cudnnBackendHeurMode_t mode) {
  const std::vector<DnnRef>& operations = graph.refs(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  const DnnConvolution conv(*operations[0]);
  const bool nhwc = conv.x.is_nhwc() && conv.w.is_nhwc() && conv.y.is_nhwc();
  const bool fused = operations.size() > 1, forward = conv.direction == DnnDirection::forward;
  std::vector<int> found;
  if (nhwc && mode != CUDNN_HEUR_MODE_FALLBACK) found.push_back(0);
  if (!fused || nhwc) found.push_back(1);
  if (!forward) found.push_back(2);
  return found;
}

cudnnStatus_t finalize(DnnDescriptor& d) {
  if (d.finalized) return CUDNN_STATUS_SUCCESS;
  switch (d.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return finalize_tensor(d);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return finalize_convolution(d);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return has_parts(d) ? finalize_operation(d) : missing("a part of the operation");
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      return finalize_pointwise(d);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return finalize_pointwise_operation(d);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return finalize_graph(d);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return finalize_heuristics(d);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return finalize_plan(d);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return finalize_pack(d);
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
      return d.values.empty() ? missing("the device") : CUDNN_STATUS_SUCCESS;
    default:
      return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the stand-in only gives such descriptors");
  }
}

// ---- Readings of descriptors -------------------------------------------------------------------

DnnTensor::DnnTensor(const DnnDescriptor& d)
    : id(d.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0)),
      alignment(d.one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0)),
      type(number_of(d.one(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_INT8))),
      is_virtual(d.one<uint8_t>(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0) != 0),
      sizes(d.list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
      strides(d.list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES)) {}

int64_t DnnTensor::count() const {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

size_t DnnTensor::span_bytes() const {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) last += (sizes[i] - 1) * strides[i];
  return static_cast<size_t>(last + 1) * size_of(type);
}

bool DnnTensor::is_nhwc() const { return strides[1] == 1; }

bool DnnConvolution::is_one(const DnnDescriptor& d) {
  return d.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
         d.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
         d.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}

namespace {

/// The same part's attribute in the three operations.
cudnnBackendAttributeName_t by_direction(const DnnDescriptor& d,
                                         cudnnBackendAttributeName_t forward,
                                         cudnnBackendAttributeName_t data,
                                         cudnnBackendAttributeName_t filter) {
  return d.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? forward
         : d.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? data
                                                                                  : filter;
}

}  // namespace

DnnConvolution::DnnConvolution(const DnnDescriptor& d)
    : direction(d.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
                    ? DnnDirection::forward
                : d.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                    ? DnnDirection::data
                    : DnnDirection::filter),
      x_ref(d.ref(by_direction(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X))),
      w_ref(d.ref(by_direction(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW))),
      y_ref(d.ref(by_direction(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY))),
      x(*x_ref),
      w(*w_ref),
      y(*y_ref),
      alpha(d.one(by_direction(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA),
                  1.0f)),
      beta(d.one(by_direction(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA),
                 0.0f)) {
  const DnnRef conv = d.ref(by_direction(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC));
  pad = conv->list<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  post_pad = conv->list<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  stride = conv->list<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  dilation = conv->list<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  flipped =
      conv->one(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION) == CUDNN_CONVOLUTION;
}

}  // namespace crema::cuda_sim
