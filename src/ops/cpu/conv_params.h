// The weight and bias gradient of a 2-D nhwc convolution by our own matrix product: what the
// library has reaches three quarters of it (AVX2) or less. For few outputs: see ConvOuter.
#pragma once

#include <vector>

#include "ops/cpu/gemm.h"

namespace crema {

class ConvParams {
 public:
  /// Whether this takes the problem and is the faster one (a few channels per group, at least).
  static bool suits(const ConvDesc& desc);

  ConvParams(const Isa& isa, const Gemm& gemm, const ConvDesc& desc);
  size_t scratch_bytes() const;
  /// scratch: that many bytes, 64-byte aligned, in each call.
  void run(const float* x, const float* dy, Grad dw, Grad db, float* scratch);

 private:
  /// Columns whose taps need the same pixels: all, those of a row of the window, or of one tap.
  enum class Unit { window, row, tap };
  Unit choose_unit() const;
  /// Whether each row of the window can begin a strip, which then lies in one piece.
  bool aligned_rows_cost_nothing() const;
  void lay_out_columns(Unit unit);
  void add_column(int32_t offset);
  void end_group(int32_t begin, int32_t h, int32_t w);
  void sum(float* bands);
  void bring_home(const Grad& dw) const;
  void sum_bias(const Grad& db) const;
  bool has_ones() const { return ones_ >= 0; }

  const Isa& isa_;
  const Gemm& gemm_;
  ConvParamsArgs args_{};
  std::vector<ConvSegment> segments_;
  std::vector<int32_t> segment_begin_;
  std::vector<ConvColumns> column_groups_;
  std::vector<int32_t> tap_column_;  // the first column of each tap
  int32_t column_ = 0, next_ = 0;    // while they are laid out
  int64_t in_per_group_ = 0, taps_ = 0, band_size_ = 0;
  int32_t ones_ = -1;  // the column of ones, where the bias wants one and a strip has room
};

}  // namespace crema
