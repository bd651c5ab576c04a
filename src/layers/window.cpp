// Reading and checking of windows. All arithmetic is 64-bit and every field is below 2^30, so
// nothing overflows.
#include "layers/window.h"

#include "layers/common.h"

namespace crema {

namespace {

SpatialDims read_pair(const WindowField& field, int axes) {
  require(field.values.empty(), field.name, ": excludes ", field.name_h, " and ", field.name_w);
  require(axes == 2, field.h ? field.name_h : field.name_w, ": is for 2 spatial axes, here are ",
          axes, "; use ", field.name);
  require(field.h || field.other, field.name_h, ": missing beside ", field.name_w);
  require(field.w || field.other, field.name_w, ": missing beside ", field.name_h);
  return {2, {field.h ? *field.h : *field.other, field.w ? *field.w : *field.other}};
}

SpatialDims read_list(const WindowField& field, int axes) {
  const auto count = static_cast<int>(field.values.size());
  require(count > 0 || field.unset, field.name, ": missing");
  require(count <= 1 || count == axes, field.name, ": ", count, " values, but 1 or ", axes,
          " (one for each spatial axis) are possible");
  SpatialDims dims{axes, {}};
  for (int i = 0; i < axes; ++i) {
    dims[i] = count == 0 ? *field.unset : field.values[static_cast<size_t>(count == 1 ? 0 : i)];
  }
  return dims;
}

template <class Repeated>
std::vector<int64_t> list_of(const Repeated& values) {
  return {values.begin(), values.end()};
}

std::optional<int64_t> given(bool is_written, uint32_t value) {
  return is_written ? std::optional<int64_t>(value) : std::nullopt;
}

}  // namespace

SpatialDims read_window(const WindowField& field, int axes) {
  const SpatialDims dims = field.h || field.w ? read_pair(field, axes) : read_list(field, axes);
  for (int i = 0; i < axes; ++i) {
    require(dims[i] >= field.min, field.name, ": must be at least ", field.min);
    require(dims[i] <= kMaxWindow, field.name, ": ", dims[i], " is too large");
  }
  return dims;
}

ConvShape read_conv_shape(const ConvolutionParameter& p, const Shape& bottom) {
  ConvShape shape;
  require(-bottom.axes() <= p.axis() && p.axis() < bottom.axes(), "axis: ", p.axis(),
          " does not exist in the bottom of shape ", bottom);
  shape.axis = bottom.canonical(p.axis());
  shape.batch = bottom.count(0, shape.axis);
  shape.channels = bottom[shape.axis];
  const int axes = bottom.axes() - shape.axis - 1;
  require(axes <= kMaxSpatialAxes, "axis: ", axes, " spatial axes follow it, at most ",
          kMaxSpatialAxes, " are possible");
  shape.size.axes = axes;
  for (int i = 0; i < axes; ++i) shape.size[i] = bottom[shape.axis + 1 + i];
  shape.kernel = read_window({.name = "kernel_size",
                              .name_h = "kernel_h",
                              .name_w = "kernel_w",
                              .values = list_of(p.kernel_size()),
                              .h = given(p.has_kernel_h(), p.kernel_h()),
                              .w = given(p.has_kernel_w(), p.kernel_w()),
                              .unset = axes == 0 ? std::optional<int64_t>(1) : std::nullopt,
                              .other = {},
                              .min = 1},
                             axes);
  shape.stride = read_window({.name = "stride",
                              .name_h = "stride_h",
                              .name_w = "stride_w",
                              .values = list_of(p.stride()),
                              .h = given(p.has_stride_h(), p.stride_h()),
                              .w = given(p.has_stride_w(), p.stride_w()),
                              .unset = 1,
                              .other = {},
                              .min = 1},
                             axes);
  shape.pad = read_window({.name = "pad",
                           .name_h = "pad_h",
                           .name_w = "pad_w",
                           .values = list_of(p.pad()),
                           .h = given(p.has_pad_h(), p.pad_h()),
                           .w = given(p.has_pad_w(), p.pad_w()),
                           .unset = 0,
                           .other = 0,
                           .min = 0},
                          axes);
  shape.dilation = read_window({.name = "dilation",
                                .name_h = "dilation",
                                .name_w = "dilation",
                                .values = list_of(p.dilation()),
                                .h = {},
                                .w = {},
                                .unset = 1,
                                .other = {},
                                .min = 1},
                               axes);
  return shape;
}

SpatialDims conv_output(const ConvShape& s) {
  SpatialDims out{s.size.axes, {}};
  for (int i = 0; i < out.axes; ++i) {
    const int64_t room = s.size[i] + 2 * s.pad[i] - s.extent(i);
    require(room >= 0, "kernel_size: ", s.kernel, " with dilation ", s.dilation,
            " does not fit into ", s.size, " with pad ", s.pad);
    out[i] = room / s.stride[i] + 1;
  }
  return out;
}

SpatialDims deconv_output(const ConvShape& s) {
  SpatialDims out{s.size.axes, {}};
  for (int i = 0; i < out.axes; ++i) {
    out[i] = s.stride[i] * (s.size[i] - 1) + s.extent(i) - 2 * s.pad[i];
    require(out[i] >= 1, "pad: ", s.pad, " leaves nothing of the output of ", s.size,
            " with kernel_size ", s.kernel, " and stride ", s.stride);
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const SpatialDims& dims) {
  for (int i = 0; i < dims.axes; ++i) out << (i > 0 ? " " : "") << dims[i];
  return out;
}

}  // namespace crema
