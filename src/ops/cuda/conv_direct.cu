// Any number of spatial axes, each thread gathering the products of one element. Sums are kept in
// double.
#include "base/error.h"
#include "ops/cuda/act.h"
#include "ops/cuda/channel_sums.h"
#include "ops/cuda/conv_direct.h"
#include "ops/cuda/launch.h"

namespace crema::cuda {
namespace {

constexpr int kThreads = 128;

struct DirectArgs {
  int axes;
  int64_t batch, inputs, outputs, in_per_group, out_per_group, window, x_plane, y_plane;
  int64_t x_size[kMaxSpatialAxes], y_size[kMaxSpatialAxes], w_size[kMaxSpatialAxes];
  int64_t stride[kMaxSpatialAxes], pad[kMaxSpatialAxes], dilation[kMaxSpatialAxes];
  bool is_nhwc, accumulate;
  Act act;
  const float *x, *w, *b, *residual, *dy;
  float *y, *dx, *dw;
};

__device__ int64_t offset_of(const DirectArgs& a, int64_t channels, int64_t plane, int64_t n,
                             int64_t c, int64_t place) {
  return a.is_nhwc ? (n * plane + place) * channels + c : (n * channels + c) * plane + place;
}
__device__ int64_t x_at(const DirectArgs& a, int64_t n, int64_t c, int64_t place) {
  return offset_of(a, a.inputs, a.x_plane, n, c, place);
}
__device__ int64_t y_at(const DirectArgs& a, int64_t n, int64_t c, int64_t place) {
  return offset_of(a, a.outputs, a.y_plane, n, c, place);
}

/// The place in x's plane that output place reads through window element t, or -1: in the padding.
__device__ int64_t source_of(const DirectArgs& a, int64_t place, int64_t t) {
  int64_t flat = 0, step = 1;
  for (int k = a.axes - 1; k >= 0; --k) {
    const int64_t at =
        place % a.y_size[k] * a.stride[k] - a.pad[k] + t % a.w_size[k] * a.dilation[k];
    if (at < 0 || at >= a.x_size[k]) return -1;
    flat += at * step;
    step *= a.x_size[k];
    place /= a.y_size[k];
    t /= a.w_size[k];
  }
  return flat;
}

/// The place of y's plane that reads input place through window element t, or -1: none.
__device__ int64_t target_of(const DirectArgs& a, int64_t place, int64_t t) {
  int64_t flat = 0, step = 1;
  for (int k = a.axes - 1; k >= 0; --k) {
    const int64_t start = place % a.x_size[k] + a.pad[k] - t % a.w_size[k] * a.dilation[k];
    if (start < 0 || start % a.stride[k] != 0 || start / a.stride[k] >= a.y_size[k]) return -1;
    flat += start / a.stride[k] * step;
    step *= a.y_size[k];
    place /= a.x_size[k];
    t /= a.w_size[k];
  }
  return flat;
}

__device__ void put(float* to, double value, bool accumulate) {
  *to = accumulate ? *to + static_cast<float>(value) : static_cast<float>(value);
}

__device__ double product(float a, float b) {
  return static_cast<double>(a) * static_cast<double>(b);
}

__global__ void __launch_bounds__(kThreads) direct_forward(DirectArgs a, int64_t count) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t place = i % a.y_plane, k = i / a.y_plane % a.outputs;
    const int64_t n = i / a.y_plane / a.outputs, first = k / a.out_per_group * a.in_per_group;
    double sum = a.b ? static_cast<double>(a.b[k]) : 0.0;
    for (int64_t t = 0; t < a.window; ++t) {
      const int64_t at = source_of(a, place, t);
      if (at < 0) continue;
      for (int64_t c = 0; c < a.in_per_group; ++c) {
        sum +=
            product(a.w[(k * a.in_per_group + c) * a.window + t], a.x[x_at(a, n, first + c, at)]);
      }
    }
    const int64_t to = y_at(a, n, k, place);
    a.y[to] = activate(a.act, static_cast<float>(sum) + (a.residual ? a.residual[to] : 0.0f));
  }
}

__global__ void __launch_bounds__(kThreads) direct_data(DirectArgs a, int64_t count) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t place = i % a.x_plane, c = i / a.x_plane % a.inputs;
    const int64_t n = i / a.x_plane / a.inputs, first = c / a.in_per_group * a.out_per_group;
    double sum = 0;
    for (int64_t t = 0; t < a.window; ++t) {
      const int64_t at = target_of(a, place, t);
      if (at < 0) continue;
      for (int64_t k = first; k < first + a.out_per_group; ++k) {
        sum += product(a.w[(k * a.in_per_group + c % a.in_per_group) * a.window + t],
                       a.dy[y_at(a, n, k, at)]);
      }
    }
    put(a.dx + x_at(a, n, c, place), sum, a.accumulate);
  }
}

__global__ void __launch_bounds__(kThreads) direct_filter(DirectArgs a, int64_t count) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t t = i % a.window, c = i / a.window % a.in_per_group;
    const int64_t k = i / a.window / a.in_per_group;
    const int64_t input = k / a.out_per_group * a.in_per_group + c;
    double sum = 0;
    for (int64_t place = 0; place < a.y_plane; ++place) {
      const int64_t at = source_of(a, place, t);
      if (at < 0) continue;
      for (int64_t n = 0; n < a.batch; ++n) {
        sum += product(a.x[x_at(a, n, input, at)], a.dy[y_at(a, n, k, place)]);
      }
    }
    put(a.dw + i, sum, a.accumulate);
  }
}

class DirectConvPlan : public ConvPlan {
 public:
  DirectConvPlan(CudaOps& ops, const ConvDesc& desc) : ops_(ops), desc_(desc) {
    require(desc.pad.axes <= kMaxSpatialAxes, "convolution takes up to ", kMaxSpatialAxes,
            " spatial axes");
    args_.axes = desc.pad.axes;
    args_.batch = desc.x.shape[0];
    args_.inputs = desc.x.shape[1];
    args_.outputs = desc.y.shape[1];
    args_.in_per_group = desc.w.shape[1];
    args_.out_per_group = desc.w.shape[0] / desc.groups;
    args_.window = desc.w.shape.count(2);
    args_.x_plane = desc.x.shape.count(2);
    args_.y_plane = desc.y.shape.count(2);
    for (int a = 0; a < args_.axes; ++a) {
      args_.x_size[a] = desc.x.shape[a + 2];
      args_.y_size[a] = desc.y.shape[a + 2];
      args_.w_size[a] = desc.w.shape[a + 2];
      args_.stride[a] = desc.stride[a];
      args_.pad[a] = desc.pad[a];
      args_.dilation[a] = desc.dilation[a];
    }
    args_.is_nhwc = desc.x.layout == Layout::nhwc;
    args_.act = desc.act;
  }

  Needs needs() const override {
    return {.scratch = desc_.train && desc_.bias ? bias_gradient_bytes(desc_.y) : 0};
  }
  void bind(const Workspace& workspace) override { scratch_ = workspace.scratch.data; }
  void weights_changed(CTensor) override {}

  void forward(CTensor x, CTensor w, CTensor b, CTensor residual, Tensor y) override {
    DirectArgs args = args_;
    args.x = x.f32();
    args.w = w.f32();
    args.b = desc_.bias ? b.f32() : nullptr;
    args.residual = desc_.residual ? residual.f32() : nullptr;
    args.y = y.f32();
    each(direct_forward, args, y.count());
  }

  void backward_data(CTensor dy, CTensor w, Grad dx) override {
    if (!dx) return;
    DirectArgs args = args_;
    args.dy = dy.f32();
    args.w = w.f32();
    args.dx = dx.t.f32();
    args.accumulate = dx.how == Write::accumulate;
    each(direct_data, args, dx.t.count());
  }

  void backward_params(CTensor x, CTensor dy, Grad dw, Grad db) override {
    if (dw) {
      DirectArgs args = args_;
      args.x = x.f32();
      args.dy = dy.f32();
      args.dw = dw.t.f32();
      args.accumulate = dw.how == Write::accumulate;
      each(direct_filter, args, dw.t.count());
    }
    if (db) bias_gradient({dy.data, desc_.y}, db, scratch_, ops_.stream());
  }

 private:
  void each(void (*kernel)(DirectArgs, int64_t), const DirectArgs& args, int64_t count) const {
    cuda::launch(kernel, blocks_for(count, kThreads), kThreads, 0, ops_.stream(), args, count);
  }

  CudaOps& ops_;
  ConvDesc desc_;
  DirectArgs args_{};
  void* scratch_ = nullptr;
};

}  // namespace

std::unique_ptr<ConvPlan> make_direct_conv(CudaOps& ops, const ConvDesc& desc) {
  return std::make_unique<DirectConvPlan>(ops, desc);
}

}  // namespace crema::cuda
