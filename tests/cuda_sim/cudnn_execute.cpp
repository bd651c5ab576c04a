// cudnnBackendExecute: the convolution as plain loops, then what follows it element by element.
#include <algorithm>
#include <limits>

#include "cuda_sim/cudnn_sim.h"
#include "cuda_sim/sim.h"

namespace crema::cuda_sim {
namespace {

using Pointers = std::map<int64_t, void*>;

/// Calls f(place in memory) for each element, in N,C,... order.
template <class F>
void for_each_element(const DnnTensor& t, const F& f) {
  std::vector<int64_t> at(t.sizes.size());
  for (int64_t i = 0, n = t.count(); i < n; ++i) {
    int64_t place = 0;
    for (size_t axis = 0; axis < at.size(); ++axis) place += at[axis] * t.strides[axis];
    f(place);
    for (size_t axis = at.size(); axis-- > 0 && ++at[axis] == t.sizes[axis];) at[axis] = 0;
  }
}

std::vector<float> read(const DnnTensor& t, const Pointers& pointers, bool tf32) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(t.count()));
  const void* base = pointers.at(t.id);
  for_each_element(t, [&](int64_t place) {
    const float value = load(t.type, base, place);
    values.push_back(tf32 ? round_to_tf32(value) : value);
  });
  return values;
}

void write(const DnnTensor& t, const Pointers& pointers, const std::vector<float>& values) {
  size_t i = 0;
  void* base = pointers.at(t.id);
  for_each_element(t, [&](int64_t place) { store(t.type, base, place, values[i++]); });
}

/// The sizes of a convolution with three spatial axes; missing ones are 1.
struct Sizes {
  explicit Sizes(const DnnConvolution& conv) : flipped(conv.flipped) {
    const size_t axes = conv.pad.size();
    n = conv.x.sizes[0];
    c = conv.x.sizes[1];
    k = conv.y.sizes[1];
    per_group = conv.w.sizes[1];
    per_group_out = k / (c / per_group);
    for (size_t i = 0; i < axes; ++i) {
      const size_t to = i + 3 - axes;
      x[to] = conv.x.sizes[i + 2];
      w[to] = conv.w.sizes[i + 2];
      y[to] = conv.y.sizes[i + 2];
      pad[to] = conv.pad[i];
      stride[to] = conv.stride[i];
      dilation[to] = conv.dilation[i];
    }
  }
  int64_t x_plane() const { return x[0] * x[1] * x[2]; }
  int64_t w_plane() const { return w[0] * w[1] * w[2]; }
  int64_t y_plane() const { return y[0] * y[1] * y[2]; }
  bool flipped;
  int64_t n = 0, c = 0, k = 0, per_group = 0, per_group_out = 0;
  int64_t x[3] = {1, 1, 1}, w[3] = {1, 1, 1}, y[3] = {1, 1, 1};
  int64_t pad[3] = {0, 0, 0}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
};

/// Outputs [begin, end) of the last axis whose input for tap `tap` lies inside the picture.
void inside_range(const Sizes& s, int64_t tap, int64_t& begin, int64_t& end) {
  const int64_t shift = tap * s.dilation[2] - s.pad[2];
  begin = 0;
  while (begin < s.y[2] && begin * s.stride[2] + shift < 0) ++begin;
  end = s.y[2];
  while (end > begin && (end - 1) * s.stride[2] + shift >= s.x[2]) --end;
}

/// Calls row(x offset, w offset, y offset, count) for each run along the last axis of products
/// y[y offset + i] <-> w[w offset] * x[x offset + i * stride].
template <class Row>
void for_each_row(const Sizes& s, const Row& row) {
  for (int64_t n = 0; n < s.n; ++n) {
    for (int64_t k = 0; k < s.k; ++k) {
      for (int64_t j = 0; j < s.per_group; ++j) {
        const int64_t c = k / s.per_group_out * s.per_group + j;
        const int64_t x_plane = (n * s.c + c) * s.x_plane(), y_plane = (n * s.k + k) * s.y_plane();
        const int64_t w_plane = (k * s.per_group + j) * s.w_plane();
        for (int64_t tap = 0; tap < s.w_plane(); ++tap) {
          const int64_t t2 = tap % s.w[2], t1 = tap / s.w[2] % s.w[1], t0 = tap / (s.w[1] * s.w[2]);
          const int64_t w_at = w_plane + (s.flipped ? s.w_plane() - 1 - tap : tap);
          int64_t begin = 0, end = 0;
          inside_range(s, t2, begin, end);
          if (begin >= end) continue;
          for (int64_t y0 = 0; y0 < s.y[0]; ++y0) {
            const int64_t x0 = y0 * s.stride[0] + t0 * s.dilation[0] - s.pad[0];
            if (x0 < 0 || x0 >= s.x[0]) continue;
            for (int64_t y1 = 0; y1 < s.y[1]; ++y1) {
              const int64_t x1 = y1 * s.stride[1] + t1 * s.dilation[1] - s.pad[1];
              if (x1 < 0 || x1 >= s.x[1]) continue;
              const int64_t x_first = begin * s.stride[2] + t2 * s.dilation[2] - s.pad[2];
              row(x_plane + (x0 * s.x[1] + x1) * s.x[2] + x_first, w_at,
                  y_plane + (y0 * s.y[1] + y1) * s.y[2] + begin, end - begin);
            }
          }
        }
      }
    }
  }
}

std::vector<float> convolve(const DnnConvolution& conv, const Pointers& pointers, bool tf32) {
  const Sizes s(conv);
  const bool forward = conv.direction == DnnDirection::forward;
  const bool data = conv.direction == DnnDirection::data;
  const DnnTensor& result = forward ? conv.y : data ? conv.x : conv.w;
  std::vector<double> sums(static_cast<size_t>(result.count()));
  std::vector<float> x, w, y;
  if (!data) x = read(conv.x, pointers, tf32);
  if (forward || data) w = read(conv.w, pointers, tf32);
  if (!forward) y = read(conv.y, pointers, tf32);
  const int64_t step = s.stride[2];
  for_each_row(s, [&](int64_t x_at, int64_t w_at, int64_t y_at, int64_t count) {
    if (forward) {
      const double weight = w[static_cast<size_t>(w_at)];
      double* to = sums.data() + y_at;
      const float* from = x.data() + x_at;
      for (int64_t i = 0; i < count; ++i) to[i] += weight * from[i * step];
    } else if (data) {
      const double weight = w[static_cast<size_t>(w_at)];
      double* to = sums.data() + x_at;
      const float* from = y.data() + y_at;
      for (int64_t i = 0; i < count; ++i) to[i * step] += weight * from[i];
    } else {
      double sum = 0;
      const float *a = x.data() + x_at, *b = y.data() + y_at;
      for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i * step]) * b[i];
      sums[static_cast<size_t>(w_at)] += sum;
    }
  });
  std::vector<float> former;
  if (conv.beta != 0) former = read(result, pointers, false);
  std::vector<float> values(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    values[i] =
        static_cast<float>(conv.alpha * sums[i] + (conv.beta != 0 ? conv.beta * former[i] : 0.0f));
  }
  return values;
}

float apply(const DnnDescriptor& how, float x, float b) {
  switch (how.one(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD)) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_RELU_FWD: {
      const auto low = static_cast<float>(how.one(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0.0));
      const auto high = static_cast<float>(
          how.one(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, double{std::numeric_limits<float>::max()}));
      const auto slope =
          static_cast<float>(how.one(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0.0));
      return x < low ? low + slope * (x - low) : x > high ? high : x;
    }
    case CUDNN_POINTWISE_ELU_FWD:
      return x > 0
                 ? x
                 : static_cast<float>(how.one(CUDNN_ATTR_POINTWISE_ELU_ALPHA, 1.0)) * std::expm1(x);
    default:
      return x;
  }
}

/// b's values for each element of a tensor of that shape.
std::vector<float> spread(const DnnTensor& b, const DnnTensor& like, const Pointers& pointers) {
  DnnTensor wide = b;
  wide.sizes = like.sizes;
  for (size_t axis = 0; axis < b.sizes.size(); ++axis) {
    if (b.sizes[axis] == 1) wide.strides[axis] = 0;
  }
  return read(wide, pointers, false);
}

struct Execution {
  DnnRef plan;
  Pointers pointers;
  void* workspace = nullptr;
  int card = 0;

  const DnnDescriptor& graph() const { return *plan->ref(CUDNN_ATTR_ENGINE_OPERATION_GRAPH); }
};

struct Use {
  DnnTensor tensor;
  bool is_written = false;
  std::string name;
};

/// Every tensor with memory, and whether the plan reads or writes it.
std::vector<Use> uses_of(const DnnDescriptor& graph) {
  const std::vector<DnnRef>& operations = graph.refs(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  const DnnConvolution conv(*operations[0]);
  std::vector<Use> uses = {{conv.x, conv.direction == DnnDirection::data, "x"},
                           {conv.w, conv.direction == DnnDirection::filter, "w"},
                           {conv.y, conv.direction == DnnDirection::forward, "y"}};
  for (size_t i = 1; i < operations.size(); ++i) {
    uses.push_back({DnnTensor(*operations[i]->ref(CUDNN_ATTR_OPERATION_POINTWISE_YDESC)), true,
                    "a pointwise result"});
    if (const DnnRef b = operations[i]->ref(CUDNN_ATTR_OPERATION_POINTWISE_BDESC)) {
      uses.push_back({DnnTensor(*b), false, "a pointwise input"});
    }
  }
  uses.erase(std::remove_if(uses.begin(), uses.end(),
                            [](const Use& use) { return use.tensor.is_virtual; }),
             uses.end());
  return uses;
}

bool check_memory(const Execution& e, const std::vector<Use>& uses, int64_t workspace) {
  const std::string name = "cudnnBackendExecute: ";
  const DnnConvolution conv(*e.graph().refs(CUDNN_ATTR_OPERATIONGRAPH_OPS)[0]);
  for (const Use& use : uses) {
    const bool read = !use.is_written || conv.beta != 0;
    if (!check_range(e.pointers.at(use.tensor.id), use.tensor.span_bytes(),
                     read ? Access::read : Access::write, e.card, name + use.name)) {
      return false;
    }
  }
  const auto workspace_bytes = static_cast<size_t>(workspace);
  if (!check_range(e.workspace, workspace_bytes, Access::write, e.card, name + "the workspace")) {
    return false;
  }
  for (const Use& a : uses) {
    const void* at = e.pointers.at(a.tensor.id);
    bool apart =
        workspace == 0 || !overlap(at, a.tensor.span_bytes(), e.workspace, workspace_bytes);
    for (const Use& b : uses) {
      if (&a == &b || !a.is_written) continue;
      apart = apart && !overlap(at, a.tensor.span_bytes(), e.pointers.at(b.tensor.id),
                                b.tensor.span_bytes());
    }
    if (!apart) {
      violation(name + a.name + " overlaps another tensor or the workspace");
      return false;
    }
  }
  return true;
}

void run(const Execution& e) {
  play_engine(e.plan->engine);
  const int64_t workspace = dnn_workspace(e.plan->engine, e.graph());
  if (!check_memory(e, uses_of(e.graph()), workspace)) return;
  if (workspace > 0) poison(e.workspace, static_cast<size_t>(workspace));
  const std::vector<DnnRef>& operations = e.graph().refs(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  const DnnConvolution conv(*operations[0]);
  const bool tf32 = dnn_engine(e.plan->engine).tensor_cores && conv.x.type == Number::f32;
  std::vector<float> values = convolve(conv, e.pointers, tf32);
  const DnnTensor& result = conv.direction == DnnDirection::forward ? conv.y
                            : conv.direction == DnnDirection::data  ? conv.x
                                                                    : conv.w;
  if (!result.is_virtual) write(result, e.pointers, values);
  for (size_t i = 1; i < operations.size(); ++i) {
    const DnnDescriptor& next = *operations[i];
    const DnnTensor y(*next.ref(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    const DnnRef b_ref = next.ref(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    std::vector<float> b(b_ref == nullptr ? values.size() : 0);
    if (b_ref != nullptr) b = spread(DnnTensor(*b_ref), y, e.pointers);
    const DnnDescriptor& how = *next.ref(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    for (size_t j = 0; j < values.size(); ++j) values[j] = apply(how, values[j], b[j]);
    if (!y.is_virtual) write(y, e.pointers, values);
  }
}

/// What the library sees when it is called.
cudnnStatus_t check_call(const Execution& e) {
  for (const Use& use : uses_of(e.graph())) {
    const auto it = e.pointers.find(use.tensor.id);
    if (it == e.pointers.end()) {
      return refuse(CUDNN_STATUS_BAD_PARAM, "the pack has no pointer for " + use.name);
    }
    if (it->second == nullptr) {
      return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the pointer of " + use.name + " is null");
    }
    if (reinterpret_cast<uintptr_t>(it->second) % static_cast<uintptr_t>(use.tensor.alignment) !=
        0) {
      return refuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                    "the pointer of " + use.name + " is less aligned than was said");
    }
  }
  if (dnn_workspace(e.plan->engine, e.graph()) > 0 && e.workspace == nullptr) {
    return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the plan needs a workspace");
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace crema::cuda_sim

using namespace crema::cuda_sim;

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_handle,
                                  cudnnBackendDescriptor_t pack_handle) {
  const std::lock_guard<std::recursive_mutex> lock(big_lock());
  cudaStream_t stream_handle = nullptr;
  if (const cudnnStatus_t status = cudnnGetStream(handle, &stream_handle)) return status;
  const StreamRef stream = stream_of(stream_handle);
  const std::shared_ptr<DnnDescriptor> plan = dnn_descriptor(plan_handle);
  const std::shared_ptr<DnnDescriptor> pack = dnn_descriptor(pack_handle);
  if (stream == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "the stream is gone");
  if (plan == nullptr || pack == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "not a descriptor");
  if (plan->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
      pack->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {
    return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "a plan and a variant pack");
  }
  if (!plan->finalized || !pack->finalized) {
    return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "the plan or the pack is not finalised");
  }
  Execution e{plan, {}, pack->one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr), stream->card};
  const auto ids = pack->list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack->list<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  for (size_t i = 0; i < ids.size(); ++i) e.pointers[ids[i]] = pointers[i];
  if (const cudnnStatus_t status = check_call(e)) return status;
  const cudaError_t status =
      enqueue(stream, {.name = "cudnnBackendExecute", .run = [e] { run(e); }});
  return status == cudaSuccess
             ? CUDNN_STATUS_SUCCESS
             : refuse(CUDNN_STATUS_EXECUTION_FAILED, "the stream does not take it");
}
