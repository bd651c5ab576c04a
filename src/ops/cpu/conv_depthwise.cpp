// Threads share the channels, so each sum has one owner and one order.
#include "ops/cpu/conv_depthwise.h"

#include "ops/cpu/conv_sizes.h"
#include "ops/cpu/parallel.h"

namespace crema {

bool ConvDepthwise::suits(const Isa& isa, const ConvDesc& desc) {
  const int64_t channels = desc.x.shape[1];
  return desc.pad.axes <= 2 && desc.groups == channels && desc.y.shape[1] == channels &&
         channels % isa.gemm_cols == 0;
}

ConvDepthwise::ConvDepthwise(const Isa& isa, const ConvDesc& desc) : isa_(isa) {
  args_.batch = desc.x.shape[0];
  args_.channels = desc.x.shape[1];
  args_.height = size_along(desc.x.shape, 0);
  args_.width = size_along(desc.x.shape, 1);
  args_.out_height = size_along(desc.y.shape, 0);
  args_.out_width = size_along(desc.y.shape, 1);
  for (int axis = 0; axis < 2; ++axis) {
    args_.kernel[axis] = size_along(desc.w.shape, axis);
    args_.stride[axis] = along(desc.stride, axis, 1);
    args_.pad[axis] = along(desc.pad, axis, 0);
    args_.dilation[axis] = along(desc.dilation, axis, 1);
  }
}

size_t ConvDepthwise::scratch_bytes() const {
  return sizeof(float) * static_cast<size_t>(args_.kernel[0] * args_.kernel[1] * args_.channels);
}

void ConvDepthwise::run(const float* x, const float* dy, Grad dw, Grad db, float* scratch) {
  const int64_t taps = args_.kernel[0] * args_.kernel[1], channels = args_.channels;
  const int64_t pixels = args_.batch * args_.out_height * args_.out_width;
  args_.x = x;
  args_.dy = dy;
  args_.sums = scratch;
  if (dw) {
    const bool adds = dw.how == Write::accumulate;
    float* to = dw.t.f32();
    parallel_ranges(channels, pixels * channels * taps / 4, isa_.gemm_cols,
                    [&](int64_t begin, int64_t end) {
                      isa_.conv_depthwise(args_, begin, end);
                      for (int64_t i = begin * taps; i < end * taps; ++i) {
                        const float v = scratch[i % taps * channels + i / taps];
                        to[i] = adds ? to[i] + v : v;
                      }
                    });
  }
  if (!db) return;
  const ColumnSums sums{dy, db.t.f32(), pixels, channels, db.how == Write::accumulate};
  parallel_ranges(channels, pixels * channels, 64,
                  [&](int64_t begin, int64_t end) { isa_.column_sums(sums, begin, end); });
}

}  // namespace crema
