// Convolutions of 3 x 3 and 5 x 5 windows with step 1, in nhwc, with fewer multiplications:
// Winograd 1980, for nets Lavin and Gray 2016. A tile of 6 x 6 pixels gives 4 x 4 or 2 x 2 outputs
// by 36 products of transformed pixels and weights, which over many tiles are 36 matrix products.
// The data gradient is the same convolution of dy with turned weights, the weight gradient is the
// forward pass turned round.
#pragma once

#include "ops/cpu/gemm.h"
#include "ops/cpu/isa/winograd.h"

namespace crema {

enum class ConvDirection : uint8_t { forward, data, params };

/// Whether the classes below take the problem and are the faster ones. CREMA_WINOGRAD=off in the
/// environment: never.
bool winograd_suits(const ConvDesc& desc, ConvDirection direction);

/// Forward, or the data gradient.
class Winograd {
 public:
  Winograd(const Isa& isa, const Gemm& gemm, const ConvDesc& desc, ConvDirection direction);
  /// Of the transformed weights.
  size_t packed_bytes() const;
  size_t scratch_bytes() const;
  /// w as the layer keeps it, [outputs, channels, height, width].
  void pack(const float* w, float* packed) const;

  /// What is added to a forward pass; null: nothing.
  struct Additions {
    const float* bias = nullptr;
    const float* residual = nullptr;
    Act act{};
  };
  /// scratch: scratch_bytes() in each call. to = or += the sums.
  void run(const float* from, const float* packed, const Additions& additions, bool adds, float* to,
           float* scratch) const;

 private:
  int64_t packed_group() const;  // floats

  const Isa& isa_;
  const WinogradLoops& loops_;
  const Gemm& gemm_;
  WinogradArgs args_{};
  WinogradPackArgs pack_{};
  int64_t groups_ = 1, tiles_ = 0;
};

/// The weight and bias gradient.
class WinogradParams {
 public:
  WinogradParams(const Isa& isa, const Gemm& gemm, const ConvDesc& desc);
  size_t scratch_bytes() const;
  /// scratch: that many bytes in each call.
  void run(const float* x, const float* dy, Grad dw, Grad db, float* scratch) const;

 private:
  void weights(const WinogradParamsArgs& args, float* buffers, const WinogradUnpackArgs& out) const;
  int64_t sums() const;  // floats

  const Isa& isa_;
  const WinogradLoops& loops_;
  const Gemm& gemm_;
  WinogradParamsArgs args_{};
  WinogradUnpackArgs unpack_{};
  int64_t groups_ = 1, tiles_ = 0;
};

}  // namespace crema
