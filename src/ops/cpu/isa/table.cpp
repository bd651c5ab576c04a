// The table of one instruction set's loops.
#include "ops/cpu/isa/loops.h"

#define CREMA_TEXT_OF(x) #x
#define CREMA_TEXT(x) CREMA_TEXT_OF(x)

namespace crema::CREMA_ISA {

extern const Isa kIsa = {
    .name = CREMA_TEXT(CREMA_ISA) + 4,  // without "isa_"
    .kernels = kKernels,
    .kernel_count = kKernelCount,
    .unary = unary,
    .unary_backward = unary_backward,
    .update = update,
    .add = add,
    .narrow = narrow,
    .widen = widen,
    .transpose = transpose,
    .column_sums = column_sums,
    .gemm = gemm,
    .gemm_dots = gemm_dots,
    .gemm_rows = kGemmRows,
    .gemm_cols = kGemmCols,
    .conv_params = conv_params,
    .conv_outer = conv_outer,
    .conv_depthwise = conv_depthwise,
    .depthwise = depthwise,
    .pool_forward_nhwc = pool_forward_nhwc,
    .pool_forward_nchw = pool_forward_nchw,
    .pool_backward_nhwc = pool_backward_nhwc,
    .pool_backward_nchw = pool_backward_nchw,
    .norm_moments_nhwc = norm_moments_nhwc,
    .norm_moments_nchw = norm_moments_nchw,
    .norm_apply_nhwc = norm_apply_nhwc,
    .norm_apply_nchw = norm_apply_nchw,
    .norm_sums_nhwc = norm_sums_nhwc,
    .norm_sums_nchw = norm_sums_nchw,
    .norm_dx_nhwc = norm_dx_nhwc,
    .norm_dx_nchw = norm_dx_nchw,
    .lrn_forward = lrn_forward,
    .lrn_backward = lrn_backward,
    .lrn_within_forward = lrn_within_forward,
    .lrn_within_ratio = lrn_within_ratio,
    .lrn_within_backward = lrn_within_backward,
    .softmax_forward = softmax_forward,
    .softmax_backward = softmax_backward,
};

}  // namespace crema::CREMA_ISA
