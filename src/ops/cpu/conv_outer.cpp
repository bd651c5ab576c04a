// Set-up of the windows' pieces, threads, and the way home into plain order.
#include "ops/cpu/conv_outer.h"

#include "ops/cpu/conv_windows.h"
#include "ops/cpu/parallel.h"

namespace crema {
namespace {

int64_t padded(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

double filled(int64_t n, int64_t step) {
  return static_cast<double>(n) / static_cast<double>(padded(n, step));
}

}  // namespace

bool ConvOuter::suits(const Isa& isa, const ConvDesc& desc) {
  // What packing windows costs ConvParams, in outputs.
  constexpr double kPacking = 10;
  const int64_t outputs = desc.w.shape[0] / desc.groups;
  const auto count = static_cast<double>(outputs);
  return desc.pad.axes <= 2 && desc.y.count() > 0 && outputs >= 4 &&
         filled(outputs, isa.gemm_cols / 2) >=
             count / (count + kPacking) * filled(desc.w.shape.count(1), isa.gemm_cols);
}

ConvOuter::ConvOuter(const Isa& isa, const Gemm& gemm, const ConvDesc& desc)
    : isa_(isa), gemm_(gemm) {
  static_cast<ConvWindows&>(args_) = windows_of(desc);
  in_per_group_ = desc.w.shape[1];
  taps_ = args_.kernel[0] * args_.kernel[1];
  // What packing the outputs once more costs, in elements of windows.
  constexpr double kElements = 2;
  const double rows = share_inside(args_, 0), columns = share_inside(args_, 1);
  const auto depth = static_cast<double>(in_per_group_);
  const double by_row = rows + kElements / (depth * static_cast<double>(args_.kernel[1]));
  const double by_tap = rows * columns + kElements / depth;
  const bool is_by_tap = by_tap < 1 && by_tap < by_row, is_by_row = !is_by_tap && by_row < 1;
  args_.has_band = (args_.pad[0] > 0 || args_.pad[1] > 0) && !is_by_tap;
  lay_out_pieces(is_by_row, is_by_tap);
  args_.elements = taps_ * in_per_group_;
  args_.padded_outputs = padded(outputs(), isa.gemm_cols / 2);
  args_.pieces = pieces_.data();
  args_.groups_begin = groups_.data();
  args_.groups_end = groups_.data() + groups_.size();
  band_size_ = band_floats(args_, 0);
}

void ConvOuter::add_run(int64_t offset, int64_t length) {
  const int64_t count = (length + isa_.gemm_rows - 1) / isa_.gemm_rows;
  int32_t element = pieces_.empty() ? 0 : pieces_.back().column + pieces_.back().count;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = length * i / count, end = length * (i + 1) / count;
    const auto size = static_cast<int32_t>(end - begin);
    pieces_.push_back({element, size, static_cast<int32_t>(offset + begin)});
    element += size;
  }
}

void ConvOuter::lay_out_pieces(bool by_row, bool by_tap) {
  const int64_t line = (args_.width + (args_.has_band ? 2 * args_.pad[1] : 0)) * args_.channels;
  const bool is_whole = !by_tap && args_.groups == 1 && args_.dilation[1] == 1;
  const auto place = [this] { return static_cast<int32_t>(pieces_.size()); };
  for (int32_t h = 0; h < args_.kernel[0]; ++h) {
    const int64_t row = h * args_.dilation[0] * line;
    const int32_t row_begin = place();
    if (is_whole) add_run(row, args_.kernel[1] * in_per_group_);
    for (int32_t w = 0; w < args_.kernel[1] && !is_whole; ++w) {
      const int32_t begin = place();
      add_run(row + w * args_.dilation[1] * args_.channels, in_per_group_);
      if (by_tap) groups_.push_back({begin, place(), h, w});
    }
    if (by_row) groups_.push_back({row_begin, place(), h, -1});
  }
  if (!by_row && !by_tap) groups_.push_back({0, place(), -1, -1});
}

size_t ConvOuter::scratch_bytes() const {
  const int64_t biases = args_.groups * args_.padded_outputs, sums = biases * args_.elements;
  const int64_t bands = gemm_.most_threads() * band_size_;
  return sizeof(double) * static_cast<size_t>(biases) +
         sizeof(float) * static_cast<size_t>(sums + bands) + 64;
}

void ConvOuter::run(const float* x, const float* dy, Grad dw, Grad db, float* scratch) {
  const bool sees_all = groups_.size() == 1 && groups_[0].h < 0;
  args_.x = x;
  args_.dy = dy;
  auto* biases = reinterpret_cast<double*>(scratch);
  args_.bias_sums = db && dw && sees_all ? biases : nullptr;
  float* bands = scratch + 2 * args_.groups * args_.padded_outputs;
  args_.sums = bands + gemm_.most_threads() * band_size_;
  if (dw) {
    const int64_t work = pixels() * args_.elements * args_.groups * args_.padded_outputs / 16;
    const auto pieces = static_cast<int64_t>(pieces_.size());
    gemm_.split(pieces * isa_.gemm_rows, args_.padded_outputs, work,
                [&](int rank, const GemmPart& part) {
                  isa_.conv_outer(args_, part, bands + rank * band_size_);
                });
    bring_home(dw);
  }
  if (db) sum_bias(db);
}

void ConvOuter::bring_home(const Grad& dw) const {
  // Outputs by elements that are turned at a time.
  constexpr int64_t kOutputs = 16, kElements = 256;
  const bool adds = dw.how == Write::accumulate;
  const int64_t outputs = this->outputs(), step = args_.padded_outputs;
  const int64_t blocks = (outputs + kOutputs - 1) / kOutputs;
  const auto turn = [&](int64_t block) {
    const int64_t group = block / blocks, first = block % blocks * kOutputs;
    const int64_t count = std::min(kOutputs, outputs - first);
    const float* sums = args_.sums + group * args_.elements * step + first;
    float* to = dw.t.f32() + (group * outputs + first) * args_.elements;
    float turned[kOutputs][kElements];
    for (int64_t e = 0; e < args_.elements; e += kElements, to += kElements) {
      const int64_t some = std::min(kElements, args_.elements - e);
      for (int64_t i = 0; i < some; ++i) {
        const int64_t c = (e + i) / taps_, tap = (e + i) % taps_;
        const float* from = sums + (tap * in_per_group_ + c) * step;
        for (int64_t k = 0; k < count; ++k) turned[k][i] = from[k];
      }
      for (int64_t k = 0; k < count; ++k) {
        float* row = to + k * args_.elements;
        for (int64_t i = 0; i < some; ++i) row[i] = (adds ? row[i] : 0.0f) + turned[k][i];
      }
    }
  };
  parallel_ranges(args_.groups * blocks, args_.out_channels * args_.elements * 2, 1,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t block = begin; block < end; ++block) turn(block);
                  });
}

void ConvOuter::sum_bias(const Grad& db) const {
  const bool adds = db.how == Write::accumulate;
  const int64_t all = args_.out_channels, outputs = this->outputs();
  if (!args_.bias_sums) {
    const ColumnSums sums{args_.dy, db.t.f32(), pixels(), all, adds};
    return parallel_ranges(all, pixels() * all, 64,
                           [&](int64_t begin, int64_t end) { isa_.column_sums(sums, begin, end); });
  }
  for (int64_t k = 0; k < all; ++k) {
    float& to = db.t.f32()[k];
    const double sum = args_.bias_sums[k / outputs * args_.padded_outputs + k % outputs];
    to = static_cast<float>(sum) + (adds ? to : 0.0f);
  }
}

}  // namespace crema
