// Pooling in three spatial axes (fewer have leading axes of size 1), either order in memory: one
// thread per element, neighbours in memory by neighbouring threads. Backward gathers, so each
// element of dx is written once, the same bits each run. The winner of each window is kept from
// forward to backward.
#include "base/error.h"
#include "base/philox.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/vector_loop.h"

namespace crema::cuda {
namespace {

constexpr int kThreads = 256;
constexpr float kLowest = -3.402823466e38f;

struct PoolArgs {
  int size[3], out[3], kernel[3], stride[3], pad[3];
  int64_t channels;
  PoolKind kind;
  bool train, accumulate, is_nhwc;
  /// Per output which element of its window won: bytes (255: none), or int32 (-1: none).
  bool has_wide_winner;
  void* winner;
  const void *x, *dy;  // y and dx alike: of the kernels' T
  void *y, *dx;
  float* mask;
  uint64_t seed;
  const uint64_t* forward_count;
};

struct Place {
  int v[3];
};

__device__ Place place_of(const int* sizes, int64_t i) {
  const auto p = static_cast<int>(i % (int64_t{sizes[0]} * sizes[1] * sizes[2]));
  return {{p / (sizes[1] * sizes[2]), p / sizes[2] % sizes[1], p % sizes[2]}};
}

/// An element of a tensor of these sizes: its picture, channel and place, and how places are apart
/// in memory.
struct Element {
  int64_t n, c, flat;
  Place place;
};

__device__ Element element_of(const PoolArgs& a, const int* sizes, int64_t i) {
  const int64_t plane = int64_t{sizes[0]} * sizes[1] * sizes[2];
  Element e{};
  if (a.is_nhwc) {
    e.c = i % a.channels;
    e.flat = i / a.channels % plane;
    e.n = i / a.channels / plane;
  } else {
    e.flat = i % plane;
    e.c = i / plane % a.channels;
    e.n = i / plane / a.channels;
  }
  e.place = place_of(sizes, e.flat);
  return e;
}

/// Where channel c of picture n begins in a tensor of these sizes.
__device__ int64_t start_of(const PoolArgs& a, const int* sizes, const Element& e) {
  const int64_t plane = int64_t{sizes[0]} * sizes[1] * sizes[2];
  return a.is_nhwc ? e.n * plane * a.channels + e.c : (e.n * a.channels + e.c) * plane;
}

__device__ int lesser(int a, int b) { return a < b ? a : b; }
__device__ int greater(int a, int b) { return a > b ? a : b; }

/// Calls visit(position in x's plane, element of the window) over output o's window in order.
template <class Visit>
__device__ void over_window(const PoolArgs& a, const Place& o, const Visit& visit) {
  int first[3], begin[3], end[3];
  for (int k = 0; k < 3; ++k) {
    first[k] = o.v[k] * a.stride[k] - a.pad[k];
    begin[k] = greater(first[k], 0);
    end[k] = lesser(first[k] + a.kernel[k], a.size[k]);
  }
  for (int d = begin[0]; d < end[0]; ++d) {
    for (int h = begin[1]; h < end[1]; ++h) {
      const int at = (d * a.size[1] + h) * a.size[2];
      const int t = ((d - first[0]) * a.kernel[1] + h - first[1]) * a.kernel[2] - first[2];
      for (int w = begin[2]; w < end[2]; ++w) visit(at + w, t + w);
    }
  }
}

/// The number of elements of the window clipped to the padded picture: Caffe's divisor.
__device__ float divisor_of(const PoolArgs& a, const Place& o) {
  int size = 1;
  for (int k = 0; k < 3; ++k) {
    const int first = o.v[k] * a.stride[k] - a.pad[k];
    size *= lesser(first + a.kernel[k], a.size[k] + a.pad[k]) - first;
  }
  return static_cast<float>(size);
}

/// The flat position in x's plane of element t of output o's window; -1 where none won.
__device__ int64_t position_of(const PoolArgs& a, const Place& o, int t) {
  if (t < 0) return -1;
  const int w = o.v[2] * a.stride[2] - a.pad[2] + t % a.kernel[2];
  const int h = o.v[1] * a.stride[1] - a.pad[1] + t / a.kernel[2] % a.kernel[1];
  const int d = o.v[0] * a.stride[0] - a.pad[0] + t / a.kernel[2] / a.kernel[1];
  return (int64_t{d} * a.size[1] + h) * a.size[2] + w;
}

struct Sample {
  float value;
  int t;
};

template <class T>
__device__ Sample max_of(const PoolArgs& a, const Place& o, const T* x, int64_t stride) {
  Sample best{kLowest, -1};
  over_window(a, o, [&](int at, int t) {
    const float v = widen(x[at * stride]);
    if (v > best.value) best = {v, t};
  });
  return best;
}

/// Zeiler and Fergus 2013: an element by its share of the sum, or the expectation of that.
template <class T>
__device__ Sample sample_of(const PoolArgs& a, const Element& e, const T* x, int64_t stride) {
  float sum = 0, squares = 0;
  over_window(a, e.place, [&](int at, int) {
    const float v = widen(x[at * stride]);
    sum += v;
    squares += v * v;
  });
  if (!a.train) return {sum > 0 ? squares / sum : 0.0f, -1};
  const int64_t plane = int64_t{a.out[0]} * a.out[1] * a.out[2];
  const auto element = static_cast<uint64_t>((e.n * a.channels + e.c) * plane + e.flat);
  const Philox4 block = philox(a.seed, element / 4, *a.forward_count);
  const float limit = uniform01(block.v[element % 4]) * sum;
  Sample first{0, -1}, chosen{0, -1};
  float passed = 0;
  over_window(a, e.place, [&](int at, int t) {
    const float v = widen(x[at * stride]);
    passed += v;
    if (first.t < 0) first = {v, t};
    if (chosen.t < 0 && passed > limit) chosen = {v, t};
  });
  return chosen.t < 0 ? first : chosen;
}

template <class T>
__global__ void __launch_bounds__(kThreads) pool_forward(PoolArgs a, int64_t count) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x, stride = a.is_nhwc ? a.channels : 1;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const Element e = element_of(a, a.out, i);
    const T* x = static_cast<const T*>(a.x) + start_of(a, a.size, e);
    T& y = static_cast<T*>(a.y)[i];
    if (a.kind == PoolKind::average) {
      float sum = 0;
      over_window(a, e.place, [&](int at, int) { sum += widen(x[at * stride]); });
      narrow_to(sum / divisor_of(a, e.place), y);
      continue;
    }
    const Sample s =
        a.kind == PoolKind::max ? max_of(a, e.place, x, stride) : sample_of(a, e, x, stride);
    narrow_to(s.value, y);
    if (a.winner && a.has_wide_winner) static_cast<int32_t*>(a.winner)[i] = s.t;
    if (a.winner && !a.has_wide_winner) {
      static_cast<uint8_t*>(a.winner)[i] = static_cast<uint8_t>(s.t);
    }
    if (a.mask) a.mask[i] = static_cast<float>(position_of(a, e.place, s.t));
  }
}

/// What output at i gives to the input that is element t of its window.
template <class T>
__device__ float share_of(const PoolArgs& a, const Place& o, int64_t i, int t) {
  const T* dy = static_cast<const T*>(a.dy);
  if (a.kind == PoolKind::average) return widen(dy[i]) / divisor_of(a, o);
  const int won = a.has_wide_winner ? static_cast<const int32_t*>(a.winner)[i]
                                    : static_cast<const uint8_t*>(a.winner)[i];
  return won == t ? widen(dy[i]) : 0.0f;
}

template <class T>
__global__ void __launch_bounds__(kThreads) pool_backward(PoolArgs a, int64_t count) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x, stride = a.is_nhwc ? a.channels : 1;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const Element e = element_of(a, a.size, i);
    const int64_t start = start_of(a, a.out, e);
    int begin[3], end[3];
    for (int k = 0; k < 3; ++k) {
      const int past = e.place.v[k] + a.pad[k] - a.kernel[k];
      begin[k] = past < 0 ? 0 : past / a.stride[k] + 1;
      end[k] = lesser((e.place.v[k] + a.pad[k]) / a.stride[k] + 1, a.out[k]);
    }
    float sum = 0;
    Place o{};
    for (o.v[0] = begin[0]; o.v[0] < end[0]; ++o.v[0]) {
      const int td = e.place.v[0] - o.v[0] * a.stride[0] + a.pad[0];
      for (o.v[1] = begin[1]; o.v[1] < end[1]; ++o.v[1]) {
        const int th = td * a.kernel[1] + e.place.v[1] - o.v[1] * a.stride[1] + a.pad[1];
        for (o.v[2] = begin[2]; o.v[2] < end[2]; ++o.v[2]) {
          const int t = th * a.kernel[2] + e.place.v[2] - o.v[2] * a.stride[2] + a.pad[2];
          const int64_t at = (int64_t{o.v[0]} * a.out[1] + o.v[1]) * a.out[2] + o.v[2];
          sum += share_of<T>(a, o, start + at * stride, t);
        }
      }
    }
    T& dx = static_cast<T*>(a.dx)[i];
    narrow_to(a.accumulate ? widen(dx) + sum : sum, dx);
  }
}

class KernelPoolPlan : public PoolPlan {
 public:
  KernelPoolPlan(CudaOps& ops, const PoolDesc& desc) : ops_(ops), desc_(desc) {
    require(desc.kernel.axes >= 1 && desc.kernel.axes <= 3,
            "pooling takes one to three spatial axes, here are ", desc.kernel.axes);
    for (int a = 0; a < 3; ++a) {
      args_.size[a] = args_.out[a] = args_.kernel[a] = args_.stride[a] = 1;
    }
    const int lead = 3 - desc.kernel.axes;
    for (int a = 0; a < desc.kernel.axes; ++a) {
      args_.size[lead + a] = static_cast<int>(desc.x.shape[a + 2]);
      args_.out[lead + a] = static_cast<int>(desc.y.shape[a + 2]);
      args_.kernel[lead + a] = static_cast<int>(desc.kernel[a]);
      args_.stride[lead + a] = static_cast<int>(desc.stride[a]);
      args_.pad[lead + a] = static_cast<int>(desc.pad[a]);
    }
    args_.channels = desc.x.shape[1];
    args_.kind = desc.kind;
    args_.train = desc.train;
    args_.seed = desc.seed;
    args_.has_wide_winner = int64_t{args_.kernel[0]} * args_.kernel[1] * args_.kernel[2] > 255;
    args_.is_nhwc = desc.x.layout == Layout::nhwc;
    keeps_winner_ = desc.train && desc.kind != PoolKind::average;
  }

  Needs needs() const override {
    const auto count = static_cast<size_t>(desc_.y.count());
    return {.saved = keeps_winner_ ? count * (args_.has_wide_winner ? sizeof(int32_t) : 1) : 0};
  }
  void bind(const Workspace& workspace) override {
    args_.winner = keeps_winner_ ? workspace.saved.data : nullptr;
  }

  void forward(CTensor x, Tensor y, Tensor mask) override {
    PoolArgs args = args_;
    args.x = x.data;
    args.y = y.data;
    args.mask = mask.f32();
    args.forward_count = &ops_.step_scalars()->forward_count;
    with_float_type(desc_.x.dtype, [&](auto* type) {
      cuda::launch(pool_forward<std::remove_pointer_t<decltype(type)>>,
                   blocks_for(y.count(), kThreads), kThreads, 0, ops_.stream(), args, y.count());
    });
  }

  void backward(CTensor, CTensor, CTensor dy, Grad dx) override {
    if (!dx) return;
    PoolArgs args = args_;
    args.dy = dy.data;
    args.dx = dx.t.data;
    args.accumulate = dx.how == Write::accumulate;
    with_float_type(desc_.x.dtype, [&](auto* type) {
      cuda::launch(pool_backward<std::remove_pointer_t<decltype(type)>>,
                   blocks_for(dx.t.count(), kThreads), kThreads, 0, ops_.stream(), args,
                   dx.t.count());
    });
  }

 private:
  CudaOps& ops_;
  PoolDesc desc_;
  PoolArgs args_{};
  bool keeps_winner_ = false;
};

}  // namespace

std::unique_ptr<PoolPlan> CudaOps::plan(const PoolDesc& desc) {
  return std::make_unique<KernelPoolPlan>(*this, desc);
}

}  // namespace crema::cuda
