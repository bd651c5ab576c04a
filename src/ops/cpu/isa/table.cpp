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
    .transpose = transpose,
    .column_sums = column_sums,
    .pool_forward_nhwc = pool_forward_nhwc,
    .pool_forward_nchw = pool_forward_nchw,
    .pool_backward_nhwc = pool_backward_nhwc,
    .pool_backward_nchw = pool_backward_nchw,
};

}  // namespace crema::CREMA_ISA
