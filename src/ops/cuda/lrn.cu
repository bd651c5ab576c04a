// Local response normalisation (Krizhevsky et al. 2012, section 3.3): one thread per element adds
// up its window. Backward first writes each element's factor and ratio, then adds up the ratios
// around it.
#include "base/error.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/launch.h"
#include "ops/functors.h"

namespace crema::cuda {
namespace {

constexpr int kThreads = 256;

struct LrnArgs {
  const float *x, *dy;
  float *y, *dx, *ratio, *shrink;
  int64_t channels, height, width;
  int reach;
  bool is_nhwc, within, accumulate;
  float alpha, beta, k;  // alpha over the number of elements of a window
};

__device__ float power(float scale, float beta) {
  if (beta == 0.75f) {
    const float root = root_of(scale);
    return 1.0f / (root * root_of(root));
  }
  return exp_of(-beta * log_of(scale));
}

/// The sum of f over the elements of v in the window around element i.
template <class F>
__device__ float around(const LrnArgs& a, const float* v, int64_t i, const F& f) {
  const int64_t plane = a.height * a.width;
  const int64_t c = a.is_nhwc ? i % a.channels : i / plane % a.channels;
  const int64_t pixel = a.is_nhwc ? i / a.channels % plane : i % plane;
  const int64_t channel_step = a.is_nhwc ? 1 : plane, pixel_step = a.is_nhwc ? a.channels : 1;
  float sum = 0;
  if (!a.within) {
    const int64_t begin = c > a.reach ? -int64_t{a.reach} : -c;
    const int64_t end = a.channels - 1 - c < a.reach ? a.channels - 1 - c : a.reach;
    for (int64_t j = begin; j <= end; ++j) sum += f(v[i + j * channel_step]);
    return sum;
  }
  const int64_t h = pixel / a.width, w = pixel % a.width;
  for (int64_t dh = -a.reach; dh <= a.reach; ++dh) {
    if (h + dh < 0 || h + dh >= a.height) continue;
    for (int64_t dw = -a.reach; dw <= a.reach; ++dw) {
      if (w + dw < 0 || w + dw >= a.width) continue;
      sum += f(v[i + (dh * a.width + dw) * pixel_step]);
    }
  }
  return sum;
}

__device__ float scale_of(const LrnArgs& a, int64_t i) {
  return a.k + a.alpha * around(a, a.x, i, [](float v) { return v * v; });
}

__global__ void __launch_bounds__(kThreads) lrn_forward(LrnArgs a, int64_t n) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    a.y[i] = a.x[i] * power(scale_of(a, i), a.beta);
  }
}

__global__ void __launch_bounds__(kThreads) lrn_ratio(LrnArgs a, int64_t n) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    const float scale = scale_of(a, i), shrink = power(scale, a.beta);
    a.shrink[i] = shrink;
    a.ratio[i] = a.dy[i] * a.x[i] * shrink / scale;
  }
}

__global__ void __launch_bounds__(kThreads) lrn_backward(LrnArgs a, int64_t n) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  const float slope = 2.0f * a.alpha * a.beta;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    const float sum = around(a, a.ratio, i, [](float v) { return v; });
    const float g = a.dy[i] * a.shrink[i] - slope * a.x[i] * sum;
    a.dx[i] = a.accumulate ? a.dx[i] + g : g;
  }
}

class KernelLrnPlan : public LrnPlan {
 public:
  KernelLrnPlan(CudaOps& ops, const LrnDesc& desc) : ops_(ops), desc_(desc) {
    const Shape& shape = desc.x.shape;
    require(shape.axes() >= 2, "LRN needs at least two axes, here are ", shape.axes());
    require(!desc.within || shape.axes() <= 4, "LRN within a channel takes pictures of two axes");
    require(desc.x.dtype == DType::f32, "LRN computes in 32-bit floats");
    args_.channels = shape[1];
    args_.width = shape.axes() > 2 ? shape[shape.axes() - 1] : 1;
    args_.height = args_.width == 0 ? 0 : shape.count(2) / args_.width;
    args_.reach = desc.size / 2;
    args_.is_nhwc = desc.x.layout == Layout::nhwc;
    args_.within = desc.within;
    const auto size = static_cast<float>(desc.size);
    args_.alpha = desc.alpha / (desc.within ? size * size : size);
    args_.beta = desc.beta;
    args_.k = desc.within ? 1.0f : desc.k;
    if (!desc.train) return;
    ratio_at_ = parts_.add(desc.x.bytes());
    shrink_at_ = parts_.add(desc.x.bytes());
  }

  Needs needs() const override { return {.scratch = parts_.total()}; }
  void bind(const Workspace& workspace) override {
    args_.ratio = part<float>(workspace.scratch, ratio_at_);
    args_.shrink = part<float>(workspace.scratch, shrink_at_);
  }

  void forward(CTensor x, Tensor y) override {
    LrnArgs args = args_;
    args.x = x.f32();
    args.y = y.f32();
    each(lrn_forward, args);
  }

  void backward(CTensor x, CTensor, CTensor dy, Grad dx) override {
    if (!dx) return;
    LrnArgs args = args_;
    args.x = x.f32();
    args.dy = dy.f32();
    args.dx = dx.t.f32();
    args.accumulate = dx.how == Write::accumulate;
    each(lrn_ratio, args);
    each(lrn_backward, args);
  }

 private:
  void each(void (*kernel)(LrnArgs, int64_t), const LrnArgs& args) const {
    const int64_t n = desc_.x.count();
    cuda::launch(kernel, blocks_for(n, kThreads), kThreads, 0, ops_.stream(), args, n);
  }

  CudaOps& ops_;
  LrnDesc desc_;
  LrnArgs args_{};
  Parts parts_;
  size_t ratio_at_ = 0, shrink_at_ = 0;
};

}  // namespace

std::unique_ptr<LrnPlan> CudaOps::plan(const LrnDesc& desc) {
  return std::make_unique<KernelLrnPlan>(*this, desc);
}

}  // namespace crema::cuda
