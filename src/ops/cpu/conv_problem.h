// A convolution in oneDNN's terms: its sizes, and the descriptors of its three directions.
#pragma once

#include "ops/cpu/dnnl_util.h"

namespace crema::dnnl_conv {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

/// A ConvDesc in the library's terms.
struct Problem {
  explicit Problem(const ConvDesc& desc)
      : x_dims(picture_dims(desc.x.shape)),
        y_dims(picture_dims(desc.y.shape)),
        w_dims(picture_dims(desc.w.shape)),
        x(plain_desc(x_dims, desc.x.layout, data_type_of(desc.x.dtype))),
        y(plain_desc(y_dims, desc.y.layout, data_type_of(desc.x.dtype))),
        bias({y_dims[1]}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::x) {
    if (desc.pad.axes == 1) {
      stride.push_back(1);
      dilation.push_back(0);
      pad.push_back(0);
    }
    for (int i = 0; i < desc.pad.axes; ++i) {
      stride.push_back(desc.stride[i]);
      dilation.push_back(desc.dilation[i] - 1);
      pad.push_back(desc.pad[i]);
    }
    for (size_t i = 0; i < pad.size(); ++i) {
      // The end may need less than pad, or less than nothing, where the stride leaves a rest.
      const int64_t extent = (w_dims[i + 2] - 1) * (dilation[i] + 1) + 1;
      pad_end.push_back((y_dims[i + 2] - 1) * stride[i] + extent - x_dims[i + 2] - pad[i]);
    }
    if (desc.groups > 1) {
      Dims grouped{desc.groups};
      grouped.insert(grouped.end(), w_dims.begin(), w_dims.end());
      grouped[1] /= desc.groups;
      w_dims = grouped;
    }
    w_plain = plain_desc(w_dims, Layout::nchw);
    w_any = any_desc(w_dims, data_type_of(desc.x.dtype));
    dw_any = any_desc(w_dims);
  }
  Dims x_dims, y_dims, w_dims, stride, dilation, pad, pad_end;
  Desc x, y, bias, w_plain, w_any, dw_any;
};

inline Forward::primitive_desc forward_desc(const DnnlContext& context, const Problem& p,
                                            const ConvDesc& desc, bool is_fused) {
  dnnl::primitive_attr attr = user_scratchpad();
  if (is_fused) {
    dnnl::post_ops ops;
    if (desc.residual) ops.append_binary(dnnl::algorithm::binary_add, p.y);
    append_act(ops, desc.act);
    attr.set_post_ops(ops);
  }
  const auto kind =
      desc.train ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const auto d = desc.bias ? Forward::desc(kind, kDirect, p.x, p.w_any, p.bias, p.y, p.stride,
                                           p.dilation, p.pad, p.pad_end)
                           : Forward::desc(kind, kDirect, p.x, p.w_any, p.y, p.stride, p.dilation,
                                           p.pad, p.pad_end);
  return {d, attr, context.engine};
}

inline BackwardData::primitive_desc backward_data_desc(const DnnlContext& context, const Problem& p,
                                                       const Forward::primitive_desc& hint) {
  return {BackwardData::desc(kDirect, p.x, p.w_any, p.y, p.stride, p.dilation, p.pad, p.pad_end),
          user_scratchpad(), context.engine, hint};
}

inline BackwardWeights::primitive_desc backward_weights_desc(const DnnlContext& context,
                                                             const Problem& p, bool has_bias,
                                                             const Forward::primitive_desc& hint) {
  const auto d = has_bias ? BackwardWeights::desc(kDirect, p.x, p.dw_any, p.bias, p.y, p.stride,
                                                  p.dilation, p.pad, p.pad_end)
                          : BackwardWeights::desc(kDirect, p.x, p.dw_any, p.y, p.stride, p.dilation,
                                                  p.pad, p.pad_end);
  return {d, user_scratchpad(), context.engine, hint};
}

}  // namespace crema::dnnl_conv
