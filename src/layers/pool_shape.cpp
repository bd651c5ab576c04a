// Reading and checking the fields of pooling.
#include "layers/pool_shape.h"

namespace crema {

namespace {

std::vector<int64_t> one(bool is_written, uint32_t value) {
  return is_written ? std::vector<int64_t>{value} : std::vector<int64_t>{};
}
std::optional<int64_t> given(bool is_written, uint32_t value) {
  return is_written ? std::optional<int64_t>(value) : std::nullopt;
}

SpatialDims read_kernel(const PoolingParameter& p, const Shape& bottom, int axes) {
  if (p.global_pooling()) {
    require(!p.has_kernel_size() && !p.has_kernel_h() && !p.has_kernel_w(),
            "kernel_size: excludes global_pooling, whose window is the whole bottom");
    SpatialDims kernel{axes, {}};
    for (int i = 0; i < axes; ++i) kernel[i] = bottom[2 + i];
    return kernel;
  }
  return read_window({.name = "kernel_size",
                      .name_h = "kernel_h",
                      .name_w = "kernel_w",
                      .values = one(p.has_kernel_size(), p.kernel_size()),
                      .h = given(p.has_kernel_h(), p.kernel_h()),
                      .w = given(p.has_kernel_w(), p.kernel_w()),
                      .unset = {},
                      .other = {},
                      .min = 1},
                     axes);
}

void check(const PoolShape& s, const PoolingParameter& p) {
  for (int i = 0; i < s.kernel.axes; ++i) {
    if (p.global_pooling()) {
      require(s.pad[i] == 0, "pad: must be 0 with global_pooling");
      require(s.stride[i] == 1, "stride: must be 1 with global_pooling");
    }
    require(s.pad[i] < s.kernel[i], "pad: ", s.pad, " must be less than kernel_size ", s.kernel);
    require(s.pad[i] == 0 || p.pool() != PoolingParameter::STOCHASTIC,
            "pad: must be 0 with pool: STOCHASTIC");
  }
}

}  // namespace

PoolShape read_pool_shape(const PoolingParameter& p, const Shape& bottom) {
  const int axes = bottom.axes() - 2;
  PoolShape s;
  s.kernel = read_kernel(p, bottom, axes);
  // BVLC: only pad_h given means pad_w 0 (Caffe refuses).
  s.pad = read_window({.name = "pad",
                       .name_h = "pad_h",
                       .name_w = "pad_w",
                       .values = one(p.has_pad(), p.pad()),
                       .h = given(p.has_pad_h(), p.pad_h()),
                       .w = given(p.has_pad_w(), p.pad_w()),
                       .unset = 0,
                       .other = 0,
                       .min = 0},
                      axes);
  s.stride = read_window({.name = "stride",
                          .name_h = "stride_h",
                          .name_w = "stride_w",
                          .values = one(p.has_stride(), p.stride()),
                          .h = given(p.has_stride_h(), p.stride_h()),
                          .w = given(p.has_stride_w(), p.stride_w()),
                          .unset = 1,
                          .other = {},
                          .min = 1},
                         axes);
  check(s, p);
  s.out.axes = axes;
  const SpatialDims size{axes, {bottom[2], axes > 1 ? bottom[3] : 0, axes > 2 ? bottom[4] : 0}};
  for (int i = 0; i < axes; ++i) {
    s.out[i] = pool_output(size[i], s.kernel[i], s.stride[i], s.pad[i],
                           p.round_mode() == PoolingParameter::CEIL);
    require(s.out[i] >= 1, "kernel_size: ", s.kernel, " does not fit into ", size, " with pad ",
            s.pad);
  }
  return s;
}

// BVLC: a last window that would start beyond the padded image is dropped without padding too;
// Caffe then reads past the plane.
int64_t pool_output(int64_t size, int64_t kernel, int64_t stride, int64_t pad, bool round_up) {
  const int64_t room = size + 2 * pad - kernel;
  int64_t steps = room / stride;  // towards 0: already up for negative numbers
  if (round_up && room > 0 && room % stride != 0) ++steps;
  if (!round_up && room < 0 && room % stride != 0) --steps;
  return steps > 0 && steps * stride >= size + pad ? steps : steps + 1;
}

}  // namespace crema
