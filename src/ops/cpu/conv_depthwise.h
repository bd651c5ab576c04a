// The weight and bias gradient of a 2-D nhwc convolution whose groups have one channel each.
#pragma once

#include "ops/cpu/isa/isa.h"

namespace crema {

class ConvDepthwise {
 public:
  static bool suits(const Isa& isa, const ConvDesc& desc);

  ConvDepthwise(const Isa& isa, const ConvDesc& desc);
  size_t scratch_bytes() const;
  /// scratch: that many bytes in each call.
  void run(const float* x, const float* dy, Grad dw, Grad db, float* scratch);

 private:
  const Isa& isa_;
  ConvDepthwiseArgs args_{};
};

}  // namespace crema
