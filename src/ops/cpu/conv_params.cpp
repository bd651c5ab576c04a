// Set-up of the weight gradient's columns, threads, and the way home into plain order.
#include "ops/cpu/conv_params.h"

#include "ops/cpu/conv_windows.h"
#include "ops/cpu/parallel.h"

namespace crema {
bool ConvParams::suits(const ConvDesc& desc) {
  return desc.pad.axes <= 2 && desc.w.shape[0] / desc.groups >= 4 && desc.w.shape.count(1) >= 8 &&
         desc.y.count() > 0;
}

ConvParams::ConvParams(const Isa& isa, const Gemm& gemm, const ConvDesc& desc)
    : isa_(isa), gemm_(gemm) {
  static_cast<ConvWindows&>(args_) = windows_of(desc);
  in_per_group_ = desc.w.shape[1];
  taps_ = args_.kernel[0] * args_.kernel[1];
  const Unit unit = choose_unit();
  const bool is_padded = args_.pad[0] > 0 || args_.pad[1] > 0;
  const bool has_whole_strips = in_per_group_ % isa.gemm_cols == 0;
  args_.has_band = !has_whole_strips || (is_padded && unit != Unit::tap);
  lay_out_columns(unit);
  if (desc.bias && column_ % isa.gemm_cols != 0) {
    ones_ = column_;
    add_column(kOnesColumn);
    column_groups_.back().end = column_;
  }
  segments_.back().count = isa.gemm_cols - segments_.back().column;
  segment_begin_.push_back(static_cast<int32_t>(segments_.size()));
  args_.columns = (column_ + isa.gemm_cols - 1) / isa.gemm_cols * isa.gemm_cols;
  args_.segments = segments_.data();
  args_.segment_begin = segment_begin_.data();
  args_.column_groups = column_groups_.data();
  args_.column_groups_end = args_.column_groups + column_groups_.size();
  band_size_ = band_floats(args_, isa.gemm_cols);
}

ConvParams::Unit ConvParams::choose_unit() const {
  // What choosing pixels and packing their gradients once more costs, in columns of products.
  constexpr double kColumns = 4;
  const double rows = share_inside(args_, 0), columns = share_inside(args_, 1);
  const auto depth = static_cast<double>(in_per_group_);
  const bool has_whole_taps = in_per_group_ % isa_.gemm_cols == 0;
  const bool has_whole_rows = in_per_group_ * args_.kernel[1] % isa_.gemm_cols == 0;
  const double by_window = 1;
  const double by_row = rows + kColumns / (depth * static_cast<double>(args_.kernel[1]));
  const double by_tap = rows * columns + kColumns / depth;
  if (has_whole_taps && by_tap < by_window && by_tap < by_row) return Unit::tap;
  return has_whole_rows && by_row < by_window ? Unit::row : Unit::window;
}

bool ConvParams::aligned_rows_cost_nothing() const {
  const int64_t width = isa_.gemm_cols, row = args_.kernel[1] * in_per_group_;
  const auto strips = [&](int64_t columns) { return (columns + width - 1) / width; };
  return args_.dilation[1] == 1 && args_.groups == 1 &&
         args_.kernel[0] * strips(row) <= strips(args_.kernel[0] * row);
}

void ConvParams::add_column(int32_t offset) {
  const auto width = static_cast<int32_t>(isa_.gemm_cols);
  if (column_ % width == 0) segment_begin_.push_back(static_cast<int32_t>(segments_.size()));
  if (column_ % width == 0 || offset != next_) segments_.push_back({column_ % width, 0, offset});
  ++segments_.back().count;
  ++column_;
  next_ = offset + 1;
}

void ConvParams::end_group(int32_t begin, int32_t h, int32_t w) {
  column_groups_.push_back({begin, column_, h, w});
}

void ConvParams::lay_out_columns(Unit unit) {
  const int64_t margin = args_.has_band ? 2 * args_.pad[1] : 0;
  const int64_t line = (args_.width + margin) * args_.channels;
  int32_t row_begin = 0;
  const auto width = static_cast<int32_t>(isa_.gemm_cols);
  const bool is_aligned = aligned_rows_cost_nothing();
  for (int32_t h = 0; h < args_.kernel[0]; ++h) {
    if (is_aligned) column_ = (column_ + width - 1) / width * width;
    for (int32_t w = 0; w < args_.kernel[1]; ++w) {
      const int64_t tap = h * args_.dilation[0] * line + w * args_.dilation[1] * args_.channels;
      const int32_t begin = column_;
      tap_column_.push_back(begin);
      for (int64_t c = 0; c < in_per_group_; ++c) add_column(static_cast<int32_t>(tap + c));
      if (unit == Unit::tap) end_group(begin, h, w);
    }
    if (unit == Unit::row) end_group(row_begin, h, -1);
    row_begin = column_;
  }
  if (unit == Unit::window) end_group(0, -1, -1);
}

size_t ConvParams::scratch_bytes() const {
  const auto sums = static_cast<size_t>(args_.out_channels * args_.columns);
  return sizeof(float) * (sums + static_cast<size_t>(gemm_.most_threads() * band_size_)) + 64;
}

void ConvParams::run(const float* x, const float* dy, Grad dw, Grad db, float* scratch) {
  args_.x = x;
  args_.dy = dy;
  args_.sums = scratch + gemm_.most_threads() * band_size_;
  if (dw || has_ones()) sum(scratch);
  if (dw) bring_home(dw);
  if (db) sum_bias(db);
}

void ConvParams::sum(float* bands) {
  const int64_t pixels = args_.batch * args_.out_height * args_.out_width;
  const int64_t work = pixels * args_.out_channels * args_.columns / 16;
  gemm_.split(args_.out_channels / args_.groups, args_.columns, work,
              [&](int rank, const GemmPart& part) {
                isa_.conv_params(args_, part, bands + rank * band_size_);
              });
}

void ConvParams::bring_home(const Grad& dw) const {
  const int64_t size = taps_ * in_per_group_;
  const bool adds = dw.how == Write::accumulate;
  parallel_ranges(args_.out_channels, args_.out_channels * size * 2, 1,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t k = begin; k < end; ++k) {
                      const float* from = args_.sums + k * args_.columns;
                      float* to = dw.t.f32() + k * size;
                      for (int64_t c = 0; c < in_per_group_; ++c) {
                        for (const int32_t column : tap_column_) {
                          *to = adds ? *to + from[column + c] : from[column + c];
                          ++to;
                        }
                      }
                    }
                  });
}

void ConvParams::sum_bias(const Grad& db) const {
  const bool adds = db.how == Write::accumulate;
  const int64_t outputs = args_.out_channels;
  if (!has_ones()) {
    const int64_t pixels = args_.batch * args_.out_height * args_.out_width;
    const ColumnSums sums{args_.dy, db.t.f32(), pixels, outputs, adds};
    return parallel_ranges(outputs, pixels * outputs, 64,
                           [&](int64_t begin, int64_t end) { isa_.column_sums(sums, begin, end); });
  }
  for (int64_t k = 0; k < outputs; ++k) {
    float& to = db.t.f32()[k];
    to = args_.sums[k * args_.columns + ones_] + (adds ? to : 0.0f);
  }
}

}  // namespace crema
