// The loops that isa/table.cpp collects; each file of this folder that is compiled per instruction
// set defines some of them.
#pragma once

#include "ops/cpu/isa/isa.h"

namespace crema::CREMA_ISA {

extern const KernelEntry kKernels[];
extern const int kKernelCount;

void unary(Unary kind, const UnaryArgs& args, const float* x, float* y, int64_t n);
void unary_backward(Unary kind, const UnaryArgs& args, const float* x, const float* y,
                    const float* dy, float* dx, int64_t n, bool accumulate);
void update(const UpdateRule& rule, const UpdateArgs& args, int64_t begin, int64_t end);
void add(const float* src, float* dst, int64_t n);
void narrow(const float* x, uint16_t* y, int64_t n);
void widen(const uint16_t* x, float* y, int64_t n);
void transpose(const TransposeArgs& args);
void column_sums(const ColumnSums& args, int64_t begin, int64_t end);
void gemm(const GemmArgs& g, const GemmPart& part);
void gemm_dots(const GemmArgs& g, int64_t begin, int64_t end);
extern const int kGemmRows, kGemmCols;
void conv_params(const ConvParamsArgs& a, const GemmPart& part, float* band);
void conv_outer(const ConvOuterArgs& a, const GemmPart& part, float* band);
void conv_depthwise(const ConvDepthwiseArgs& a, int64_t begin, int64_t end);
void depthwise(const DepthwiseArgs& a, int64_t begin, int64_t end);
void pool_forward_nhwc(const PoolArgs& a, int64_t begin, int64_t end);
void pool_forward_nchw(const PoolArgs& a, int64_t begin, int64_t end);
void pool_backward_nhwc(const PoolArgs& a, int64_t begin, int64_t end);
void pool_backward_nchw(const PoolArgs& a, int64_t begin, int64_t end);
void norm_moments_nhwc(const NormArgs& a, int64_t begin, int64_t end);
void norm_moments_nchw(const NormArgs& a, int64_t begin, int64_t end);
void norm_apply_nhwc(const NormArgs& a, int64_t begin, int64_t end);
void norm_apply_nchw(const NormArgs& a, int64_t begin, int64_t end);
void norm_sums_nhwc(const NormArgs& a, int64_t begin, int64_t end);
void norm_sums_nchw(const NormArgs& a, int64_t begin, int64_t end);
void norm_dx_nhwc(const NormArgs& a, int64_t begin, int64_t end);
void norm_dx_nchw(const NormArgs& a, int64_t begin, int64_t end);
void lrn_forward(const LrnArgs& a, int64_t begin, int64_t end);
void lrn_backward(const LrnArgs& a, int64_t begin, int64_t end);
void lrn_within_forward(const LrnArgs& a, int64_t begin, int64_t end);
void lrn_within_ratio(const LrnArgs& a, int64_t begin, int64_t end);
void lrn_within_backward(const LrnArgs& a, int64_t begin, int64_t end);
void softmax_forward(const SoftmaxArgs& a, int64_t begin, int64_t end);
void softmax_backward(const SoftmaxArgs& a, int64_t begin, int64_t end);

}  // namespace crema::CREMA_ISA
