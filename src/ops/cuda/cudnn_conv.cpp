// Operation graphs, engine choice and execution.
#include "ops/cuda/cudnn_conv.h"

#include <algorithm>

#include "base/error.h"

namespace crema::cuda {
namespace {

constexpr size_t kMostMeasured = 10;  // plans for one problem; some take a second to make

enum Id : int64_t {
  kX = 'x',
  kW = 'w',
  kY = 'y',
  kBias = 'b',
  kResidual = 'r',
  kSum = 's',
  kSum2 = 't',
  kOut = 'o'
};

cudnnDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return CUDNN_DATA_HALF;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

std::vector<int64_t> strides_of(const std::vector<int64_t>& sizes, Layout layout) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = layout == Layout::nhwc ? sizes[1] : 1;
  for (size_t axis = sizes.size() - 1; axis >= 2; --axis) {
    strides[axis] = step;
    step *= sizes[axis];
  }
  strides[1] = layout == Layout::nhwc ? 1 : step;
  strides[0] = layout == Layout::nhwc ? step : step * sizes[1];
  return strides;
}

struct TensorText {
  Id id;
  std::vector<int64_t> sizes;
  Layout layout;
  DType dtype;
  bool is_virtual = false;
  int64_t alignment = 16;
};

Descriptor tensor(const TensorText& t) {
  Descriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, t.sizes);
  d.set(CUDNN_ATTR_TENSOR_STRIDES, strides_of(t.sizes, t.layout));
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t{t.id});
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, t.alignment);
  d.set_one(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type_of(t.dtype));
  if (t.is_virtual) d.set_one(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  d.finalize("a tensor descriptor");
  return d;
}

Descriptor convolution(const ConvProblem& p) {
  Descriptor d(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  d.set_one(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  d.set_one(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  d.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(p.pad.size()));
  d.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, p.dilation);
  d.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, p.stride);
  d.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, p.pad);
  d.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, p.pad);
  d.finalize("a convolution descriptor");
  return d;
}

/// The attribute names of one direction's operation.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, conv, alpha, beta;
};

OperationNames names_of(ConvDirection direction) {
  switch (direction) {
    case ConvDirection::data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvDirection::filter:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    case ConvDirection::forward:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

Descriptor operation(ConvDirection direction, const Descriptor& x, const Descriptor& w,
                     const Descriptor& y, const Descriptor& conv) {
  const OperationNames names = names_of(direction);
  Descriptor d(names.type);
  d.set(names.x, x);
  d.set(names.w, w);
  d.set(names.y, y);
  d.set(names.conv, conv);
  d.set_one(names.alpha, CUDNN_TYPE_FLOAT, 1.0f);
  d.set_one(names.beta, CUDNN_TYPE_FLOAT, 0.0f);
  d.finalize("a convolution");
  return d;
}

/// to = x + other, or relu(x) where other is null.
Descriptor pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* other,
                     const Descriptor& to) {
  Descriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how.set_one(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  how.set_one(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  how.finalize("a pointwise descriptor");
  Descriptor d(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (other) d.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *other);
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to);
  d.finalize("a pointwise operation");
  return d;
}

/// The forward operations: convolution, then what follows it, each but the last into a virtual
/// tensor.
std::vector<Descriptor> forward_operations(const ConvProblem& p) {
  const int steps = int{p.bias} + int{p.residual} + int{p.relu};
  const Descriptor x = tensor({kX, p.x, p.layout, p.dtype});
  const Descriptor w = tensor({kW, p.w, p.layout, p.dtype});
  const Id ids[] = {kSum, kSum2, kOut};
  int done = 0;
  const auto next = [&](Id id) {
    const bool is_last = done == steps;
    return tensor({is_last ? kY : id, p.y, p.layout, is_last ? p.dtype : DType::f32, !is_last});
  };
  std::vector<Descriptor> operations;
  std::vector<Descriptor> values;
  values.push_back(next(ids[0]));
  operations.push_back(operation(p.direction, x, w, values.back(), convolution(p)));
  const auto follow = [&](cudnnPointwiseMode_t mode, const Descriptor* other) {
    ++done;
    values.push_back(next(ids[done % 3]));
    operations.push_back(pointwise(mode, values[values.size() - 2], other, values.back()));
  };
  if (p.bias) {
    std::vector<int64_t> sizes(p.y.size(), 1);
    sizes[1] = p.y[1];
    const Descriptor bias = tensor({kBias, sizes, p.layout, DType::f32});
    follow(CUDNN_POINTWISE_ADD, &bias);
  }
  if (p.residual) {
    const Descriptor residual = tensor({kResidual, p.y, p.layout, p.dtype});
    follow(CUDNN_POINTWISE_ADD, &residual);
  }
  if (p.relu) follow(CUDNN_POINTWISE_RELU_FWD, nullptr);
  return operations;
}

std::vector<Descriptor> operations_of(const ConvProblem& p) {
  if (p.direction == ConvDirection::forward) return forward_operations(p);
  const DType w_dtype = p.direction == ConvDirection::filter ? p.dw_dtype : p.dtype;
  std::vector<Descriptor> operations;
  operations.push_back(operation(p.direction, tensor({kX, p.x, p.layout, p.dtype}),
                                 tensor({kW, p.w, p.layout, w_dtype}),
                                 tensor({kY, p.y, p.layout, p.dtype}), convolution(p)));
  return operations;
}

/// What an engine says of its arithmetic and its habits.
struct Notes {
  bool tensor_core = false, reduces_low = false, rounds_inputs = false, nondeterministic = false;
  int64_t engine = 0;
};

Notes notes_of(const Descriptor& config) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  int64_t count = 0;
  check(cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw),
        "reading an engine");
  cudnnBackendNumericalNote_t list[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  check(cudnnBackendGetAttribute(raw, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, list),
        "reading an engine's notes");
  Notes notes;
  for (int64_t i = 0; i < count; ++i) {
    notes.tensor_core |= list[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    notes.reduces_low |= list[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    notes.rounds_inputs |= list[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    notes.nondeterministic |= list[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
  }
  check(cudnnBackendGetAttribute(raw, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count,
                                 &notes.engine),
        "reading an engine's number");
  return notes;
}

size_t workspace_of(const Descriptor& plan) {
  int64_t bytes = 0, count = 0;
  check(cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                 CUDNN_TYPE_INT64, 1, &count, &bytes),
        "reading a plan's workspace");
  return static_cast<size_t>(bytes);
}

bool keeps(const Notes& notes, const ConvProblem& p, const EngineRules& rules) {
  const bool is_f32 = p.dtype == DType::f32;
  if (is_f32 && !rules.allow_tf32 && (notes.tensor_core || notes.rounds_inputs)) return false;
  if (notes.reduces_low) return false;
  return !(rules.is_deterministic && notes.nondeterministic);
}

/// With an axis of size 1 in front where there is one spatial axis only.
std::vector<int64_t> sizes_of(const Shape& shape) {
  std::vector<int64_t> sizes{shape[0], shape[1]};
  if (shape.axes() == 3) sizes.push_back(1);
  for (int axis = 2; axis < shape.axes(); ++axis) sizes.push_back(shape[axis]);
  return sizes;
}

std::vector<int64_t> dims_of(const SpatialDims& dims, int64_t in_front) {
  std::vector<int64_t> out;
  if (dims.axes == 1) out.push_back(in_front);
  for (int axis = 0; axis < dims.axes; ++axis) out.push_back(dims[axis]);
  return out;
}

}  // namespace

ConvProblem conv_problem(const ConvDesc& desc, ConvDirection direction) {
  ConvProblem p;
  p.direction = direction;
  p.x = sizes_of(desc.x.shape);
  p.w = sizes_of(desc.w.shape);
  p.y = sizes_of(desc.y.shape);
  p.pad = dims_of(desc.pad, 0);
  p.stride = dims_of(desc.stride, 1);
  p.dilation = dims_of(desc.dilation, 1);
  p.layout = desc.x.layout;
  p.dtype = desc.x.dtype;
  return p;
}

ConvGraph::ConvGraph(PlanParts parts, const ConvProblem& problem)
    : parts_(std::move(parts)), bias_(problem.bias), residual_(problem.residual) {}

void ConvGraph::run(cudnnHandle_t handle, const ConvPointers& pointers) const {
  std::vector<int64_t> ids{kX, kW, kY};
  std::vector<const void*> data{pointers.x, pointers.w, pointers.y};
  if (bias_) {
    ids.push_back(kBias);
    data.push_back(pointers.bias);
  }
  if (residual_) {
    ids.push_back(kResidual);
    data.push_back(pointers.residual);
  }
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           static_cast<int64_t>(data.size()), data.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set_one(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, pointers.workspace);
  pack.finalize("a variant pack");
  check(cudnnBackendExecute(handle, parts_.plan.get(), pack.get()), "a convolution");
}

Cudnn::Cudnn(cudaStream_t stream) {
  check(cudnnCreate(&handle_), "cudnnCreate");
  check(cudnnSetStream(handle_, stream), "cudnnSetStream");
}

Cudnn::Cudnn(const std::string& device_json) {
  device_.emplace(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  device_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
               static_cast<int64_t>(device_json.size()), device_json.data());
  device_->finalize("a device's description");
}

Cudnn::~Cudnn() {
  plans_.clear();
  if (handle_) cudnnDestroy(handle_);
}

std::shared_ptr<const ConvGraph> Cudnn::plan(const ConvProblem& problem, const EngineRules& rules) {
  const auto [it, fresh] = plans_.try_emplace({problem, rules});
  if (!fresh) return it->second;
  const ConvPlans found = search(problem, rules, choose_ ? kMostMeasured : 1);
  if (found.empty()) return nullptr;
  const size_t place = found.size() > 1 ? choose_(problem, rules, found) : 0;
  return it->second = found[place];
}

ConvPlans Cudnn::search(const ConvProblem& problem, const EngineRules& rules, size_t most) {
  ConvPlans found;
  const bool may_use_tensor_cores = problem.dtype != DType::f32 || rules.allow_tf32;
  for (const bool on_tensor_cores : {true, false}) {
    if (on_tensor_cores && !may_use_tensor_cores) continue;
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      search(problem, rules, mode, on_tensor_cores, most, found);
    }
  }
  return found;
}

void Cudnn::search(const ConvProblem& problem, const EngineRules& rules,
                   cudnnBackendHeurMode_t mode, bool on_tensor_cores, size_t most,
                   ConvPlans& found) {
  if (found.size() >= most) return;
  const std::vector<Descriptor> operations = operations_of(problem);
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& operation : operations) raw.push_back(operation.get());
  const auto owner = std::make_shared<Descriptor>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  Descriptor& graph = *owner;
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<int64_t>(raw.size()), raw.data());
  if (handle_) graph.set_one(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle_);
  if (!graph.try_finalize()) return;
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set_one(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (device_) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *device_);
  if (!heuristics.try_finalize()) return;

  int64_t count = 0;
  check(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
        "counting engines");
  std::vector<Descriptor> configs;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < count; ++i) {
    configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    handles.push_back(configs.back().get());
  }
  if (count > 0) {
    check(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, handles.data()),
          "reading engines");
  }
  // The fallbacks repeat engines of the first list, with settings that fit everything.
  const size_t before = mode == CUDNN_HEUR_MODE_FALLBACK ? found.size() : 0;
  const auto is_found = [&](int64_t engine) {
    return std::any_of(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(before),
                       [&](const auto& plan) { return plan->engine() == engine; });
  };
  for (int64_t i = 0; i < count && found.size() < most; ++i) {
    Descriptor& config = configs[static_cast<size_t>(i)];
    const Notes notes = notes_of(config);
    if (!keeps(notes, problem, rules) || on_tensor_cores != notes.tensor_core) continue;
    if (is_found(notes.engine)) continue;
    Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (device_) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *device_);
    if (handle_) plan.set_one(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle_);
    if (!plan.try_finalize()) continue;
    const size_t bytes = workspace_of(plan);
    if (bytes > rules.workspace_limit) continue;
    found.push_back(std::make_shared<ConvGraph>(PlanParts{owner, std::move(config), std::move(plan),
                                                          bytes, notes.tensor_core, notes.engine},
                                                problem));
  }
}

}  // namespace crema::cuda
