// Softmax along any axis of either layout: the tensor in memory is [outer, n, inner]. Contiguous
// rows have a warp each, long ones a block; otherwise a thread walks along the axis beside its
// neighbours.
#include "base/error.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/sums.h"
#include "ops/functors.h"

namespace crema::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kWarpRow = 1024;

struct SoftmaxArgs {
  const float *x, *dy;
  float *y, *dx;
  int64_t n, inner, units;
  bool accumulate;
};

/// The group of threads that works on one row: a warp or a block.
template <bool kIsBlock>
struct Group {
  __device__ static int64_t index() {
    return kIsBlock ? int64_t{blockIdx.x} : (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  }
  __device__ static int64_t lane() { return kIsBlock ? threadIdx.x : threadIdx.x % 32; }
  static constexpr int kLanes = kIsBlock ? kThreads : 32;
  __device__ static float sum(float v) {
    if constexpr (kIsBlock) return block_sum<kThreads>(v);
    return warp_sum(v);
  }
  __device__ static float max(float v) {
    if constexpr (kIsBlock) return block_max<kThreads>(v);
    return warp_max(v);
  }
};

template <bool kIsBlock>
__global__ void __launch_bounds__(kThreads) forward_rows(SoftmaxArgs a) {
  using G = Group<kIsBlock>;
  const int64_t row = G::index(), n = row < a.units ? a.n : 0;
  const float* x = a.x + row * a.n;
  float* y = a.y + row * a.n;
  float highest = -3.402823466e38f;
  for (int64_t i = G::lane(); i < n; i += G::kLanes) highest = x[i] > highest ? x[i] : highest;
  highest = G::max(highest);
  float sum = 0;
  for (int64_t i = G::lane(); i < n; i += G::kLanes) {
    const float e = exp_of(x[i] - highest);
    y[i] = e;
    sum += e;
  }
  const float scale = 1.0f / G::sum(sum);
  for (int64_t i = G::lane(); i < n; i += G::kLanes) y[i] *= scale;
}

template <bool kIsBlock>
__global__ void __launch_bounds__(kThreads) backward_rows(SoftmaxArgs a) {
  using G = Group<kIsBlock>;
  const int64_t row = G::index(), n = row < a.units ? a.n : 0;
  const float *y = a.y + row * a.n, *dy = a.dy + row * a.n;
  float* dx = a.dx + row * a.n;
  float dot = 0;
  for (int64_t i = G::lane(); i < n; i += G::kLanes) dot += y[i] * dy[i];
  dot = G::sum(dot);
  for (int64_t i = G::lane(); i < n; i += G::kLanes) {
    const float g = y[i] * (dy[i] - dot);
    dx[i] = a.accumulate ? dx[i] + g : g;
  }
}

__global__ void __launch_bounds__(kThreads) forward_columns(SoftmaxArgs a) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t u = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; u < a.units; u += step) {
    const int64_t at = u / a.inner * a.n * a.inner + u % a.inner;
    const float* x = a.x + at;
    float* y = a.y + at;
    float highest = x[0];
    for (int64_t i = 1; i < a.n; ++i) {
      highest = x[i * a.inner] > highest ? x[i * a.inner] : highest;
    }
    float sum = 0;
    for (int64_t i = 0; i < a.n; ++i) {
      const float e = exp_of(x[i * a.inner] - highest);
      y[i * a.inner] = e;
      sum += e;
    }
    const float scale = 1.0f / sum;
    for (int64_t i = 0; i < a.n; ++i) y[i * a.inner] *= scale;
  }
}

__global__ void __launch_bounds__(kThreads) backward_columns(SoftmaxArgs a) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t u = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; u < a.units; u += step) {
    const int64_t at = u / a.inner * a.n * a.inner + u % a.inner;
    const float *y = a.y + at, *dy = a.dy + at;
    float* dx = a.dx + at;
    float dot = 0;
    for (int64_t i = 0; i < a.n; ++i) dot += y[i * a.inner] * dy[i * a.inner];
    for (int64_t i = 0; i < a.n; ++i) {
      const float g = y[i * a.inner] * (dy[i * a.inner] - dot);
      dx[i * a.inner] = a.accumulate ? dx[i * a.inner] + g : g;
    }
  }
}

class KernelSoftmaxPlan : public SoftmaxPlan {
 public:
  KernelSoftmaxPlan(CudaOps& ops, const SoftmaxDesc& desc) : ops_(ops) {
    require(desc.x.dtype == DType::f32, "softmax computes in 32-bit floats");
    const Shape& shape = desc.x.shape;
    const int axis = shape.canonical(desc.axis);
    const bool is_nhwc = desc.x.layout == Layout::nhwc && shape.axes() > 2;
    args_.n = shape[axis];
    args_.inner = shape.count(axis + 1);
    if (is_nhwc && axis == 1) args_.inner = 1;
    if (is_nhwc && axis > 1) args_.inner *= shape[1];
    args_.units = args_.n == 0 ? 0 : shape.count() / args_.n;
  }

  void forward(CTensor x, Tensor y) override {
    SoftmaxArgs args = args_;
    args.x = x.f32();
    args.y = y.f32();
    run(forward_rows<false>, forward_rows<true>, forward_columns, args);
  }

  void backward(CTensor y, CTensor dy, Grad dx) override {
    if (!dx) return;
    SoftmaxArgs args = args_;
    args.y = const_cast<float*>(y.f32());  // only read
    args.dy = dy.f32();
    args.dx = dx.t.f32();
    args.accumulate = dx.how == Write::accumulate;
    run(backward_rows<false>, backward_rows<true>, backward_columns, args);
  }

 private:
  using Kernel = void (*)(SoftmaxArgs);

  void run(Kernel by_warps, Kernel by_blocks, Kernel by_threads, const SoftmaxArgs& args) const {
    if (args.inner > 1) {
      cuda::launch(by_threads, blocks_for(args.units, kThreads), kThreads, 0, ops_.stream(), args);
    } else if (args.n <= kWarpRow) {
      constexpr int64_t kRows = kThreads / 32;
      cuda::launch(by_warps, static_cast<unsigned>((args.units + kRows - 1) / kRows), kThreads, 0,
                   ops_.stream(), args);
    } else {
      cuda::launch(by_blocks, static_cast<unsigned>(args.units), kThreads, 0, ops_.stream(), args);
    }
  }

  CudaOps& ops_;
  SoftmaxArgs args_{};
};

}  // namespace

std::unique_ptr<SoftmaxPlan> CudaOps::plan(const SoftmaxDesc& desc) {
  return std::make_unique<KernelSoftmaxPlan>(*this, desc);
}

}  // namespace crema::cuda
