// The weight and bias gradient of a 2-D nhwc convolution whose outputs fill vectors: windows are
// read where they lie, and only the gradients of the outputs are packed.
#pragma once

#include <vector>

#include "ops/cpu/gemm.h"

namespace crema {

class ConvOuter {
 public:
  /// Whether this takes the problem and is faster than ConvParams.
  static bool suits(const Isa& isa, const ConvDesc& desc);

  ConvOuter(const Isa& isa, const Gemm& gemm, const ConvDesc& desc);
  size_t scratch_bytes() const;
  /// scratch: that many bytes, 64-byte aligned, in each call.
  void run(const float* x, const float* dy, Grad dw, Grad db, float* scratch);

 private:
  void lay_out_pieces(bool by_row, bool by_tap);
  void add_run(int64_t offset, int64_t length);
  void bring_home(const Grad& dw) const;
  void sum_bias(const Grad& db) const;
  int64_t pixels() const { return args_.batch * args_.out_height * args_.out_width; }
  int64_t outputs() const { return args_.out_channels / args_.groups; }

  const Isa& isa_;
  const Gemm& gemm_;
  ConvOuterArgs args_{};
  std::vector<ConvSegment> pieces_;
  std::vector<ConvColumns> groups_;
  int64_t in_per_group_ = 0, taps_ = 0, band_size_ = 0;
};

}  // namespace crema
