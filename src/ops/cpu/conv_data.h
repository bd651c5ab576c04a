// The data gradient of a 2-D nhwc convolution whose channels do not fill vectors: a matrix product
// gives each output pixel's share in its whole window, and long rows of windows are added up.
#pragma once

#include "ops/cpu/gemm.h"

namespace crema {

class ConvData {
 public:
  /// Whether this takes the problem and is the faster one.
  static bool suits(const ConvDesc& desc);

  ConvData(const Isa& isa, const Gemm& gemm, const ConvDesc& desc);
  size_t packed_bytes() const { return sizeof(float) * static_cast<size_t>(outputs_ * columns_); }
  size_t scratch_bytes() const;
  /// w in the order (output, tap, channel); packed has packed_bytes().
  void pack(const float* w, float* packed) const;
  /// scratch: scratch_bytes() in each call.
  void run(const float* dy, const float* packed, Grad dx, float* scratch) const;

 private:
  void picture(const float* dy, const float* packed, float* dx, float* shares, float* buffer) const;
  void add_pixel(const float* share, int64_t oh, int64_t ow, float* dx) const;

  const Isa& isa_;
  const Gemm& gemm_;
  int64_t batch_, channels_, outputs_, columns_, taps_;
  int64_t size_[2], out_[2], kernel_[2], stride_[2], pad_[2], dilation_[2];
  int64_t piece_rows_;  // rows of a picture of dy at a time
};

}  // namespace crema
