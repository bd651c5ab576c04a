// Descriptors and reorders.
#include "ops/cpu/dnnl_util.h"

namespace crema {

dnnl::memory::dims strides_of(const dnnl::memory::dims& dims, Layout layout) {
  const size_t axes = dims.size();
  dnnl::memory::dims strides(axes);
  int64_t stride = 1;
  if (layout == Layout::nhwc && axes > 2) {
    strides[1] = 1;
    stride = dims[1];
  }
  for (size_t axis = axes; axis-- > 0;) {
    if (layout == Layout::nhwc && axes > 2 && axis == 1) continue;
    strides[axis] = stride;
    stride *= dims[axis];
  }
  return strides;
}

dnnl::memory::dims picture_dims(const Shape& shape) {
  dnnl::memory::dims dims;
  for (int axis = 0; axis < shape.axes(); ++axis) {
    if (axis == 2 && shape.axes() == 3) dims.push_back(1);
    dims.push_back(shape[axis]);
  }
  return dims;
}

DnnlCall make_reorder(const DnnlContext& context, const dnnl::memory::desc& from,
                      const dnnl::memory::desc& to, bool accumulate) {
  dnnl::primitive_attr attr = user_scratchpad();
  if (accumulate) {
    dnnl::post_ops ops;
    ops.append_sum(1.0f);
    attr.set_post_ops(ops);
  }
  const dnnl::reorder::primitive_desc desc(context.engine, from, context.engine, to, attr);
  DnnlCall call(context, dnnl::reorder(desc));
  call.declare(DNNL_ARG_FROM, from);
  call.declare(DNNL_ARG_TO, to);
  call.declare(DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc());
  return call;
}

}  // namespace crema
