// Windows of neighbouring pixels overlap, so a picture is one thread's, and is added up in order.
#include "ops/cpu/conv_data.h"

#include "ops/cpu/conv_sizes.h"
#include "ops/cpu/parallel.h"

namespace crema {
namespace {

/// Elements of shares that stay in the second cache.
constexpr int64_t kPiece = 32768;

}  // namespace

bool ConvData::suits(const ConvDesc& desc) {
  const int64_t channels = desc.x.shape[1];
  return desc.pad.axes <= 2 && desc.groups == 1 && channels % 8 != 0 && channels >= 3 &&
         desc.w.shape[0] >= 8 && desc.w.shape.count(2) > 1 &&
         desc.x.shape[0] >= omp_get_max_threads() && desc.y.count() > 0;
}

ConvData::ConvData(const Isa& isa, const Gemm& gemm, const ConvDesc& desc)
    : isa_(isa),
      gemm_(gemm),
      batch_(desc.x.shape[0]),
      channels_(desc.x.shape[1]),
      outputs_(desc.w.shape[0]) {
  for (int axis = 0; axis < 2; ++axis) {
    size_[axis] = size_along(desc.x.shape, axis);
    out_[axis] = size_along(desc.y.shape, axis);
    kernel_[axis] = size_along(desc.w.shape, axis);
    stride_[axis] = along(desc.stride, axis, 1);
    pad_[axis] = along(desc.pad, axis, 0);
    dilation_[axis] = along(desc.dilation, axis, 1);
  }
  taps_ = kernel_[0] * kernel_[1];
  columns_ = taps_ * channels_;
  piece_rows_ = std::clamp<int64_t>(kPiece / (out_[1] * columns_), 1, out_[0]);
}

size_t ConvData::scratch_bytes() const {
  return sizeof(float) *
         static_cast<size_t>(gemm_.most_threads() * piece_rows_ * out_[1] * columns_);
}

void ConvData::pack(const float* w, float* packed) const {
  for (int64_t k = 0; k < outputs_; ++k) {
    isa_.transpose(
        {w + k * columns_, packed + k * columns_, channels_, taps_, 0, channels_, 0, taps_});
  }
}

void ConvData::run(const float* dy, const float* packed, Grad dx, float* scratch) const {
  const int64_t in = size_[0] * size_[1] * channels_, out = out_[0] * out_[1] * outputs_;
  const int64_t piece = piece_rows_ * out_[1] * columns_;
  float* to = dx.t.f32();
  const bool adds = dx.how == Write::accumulate;
  parallel_ranges(batch_, batch_ * out * columns_ / 16, 1, [&](int64_t begin, int64_t end) {
    const int rank = omp_in_parallel() ? omp_get_thread_num() : 0;
    for (int64_t n = begin; n < end; ++n) {
      if (!adds) std::fill_n(to + n * in, in, 0.0f);
      picture(dy + n * out, packed, to + n * in, scratch + rank * piece, gemm_.buffer(rank));
    }
  });
}

void ConvData::picture(const float* dy, const float* packed, float* dx, float* shares,
                       float* buffer) const {
  for (int64_t first = 0; first < out_[0]; first += piece_rows_) {
    const int64_t rows = std::min(piece_rows_, out_[0] - first), pixels = rows * out_[1];
    const GemmArgs product{.a = {dy + first * out_[1] * outputs_, outputs_, 1},
                           .b = {packed, columns_, 1},
                           .c = shares,
                           .c_row_stride = columns_,
                           .m = pixels,
                           .n = columns_,
                           .k = outputs_,
                           .packs_a = true};
    isa_.gemm(product, {0, pixels, 0, columns_, buffer});
    for (int64_t i = 0; i < pixels; ++i) {
      add_pixel(shares + i * columns_, first + i / out_[1], i % out_[1], dx);
    }
  }
}

void ConvData::add_pixel(const float* share, int64_t oh, int64_t ow, float* dx) const {
  const int64_t left = ow * stride_[1] - pad_[1];
  for (int64_t h = 0; h < kernel_[0]; ++h) {
    const int64_t ih = oh * stride_[0] - pad_[0] + h * dilation_[0];
    if (ih < 0 || ih >= size_[0]) continue;
    const float* from = share + h * kernel_[1] * channels_;
    float* row = dx + ih * size_[1] * channels_;
    if (dilation_[1] == 1) {
      const int64_t begin = std::max<int64_t>(-left, 0);
      const int64_t end = std::min(kernel_[1], size_[1] - left);
      if (begin >= end) continue;
      isa_.add(from + begin * channels_, row + (left + begin) * channels_,
               (end - begin) * channels_);
      continue;
    }
    for (int64_t w = 0; w < kernel_[1]; ++w) {
      const int64_t iw = left + w * dilation_[1];
      if (iw < 0 || iw >= size_[1]) continue;
      isa_.add(from + w * channels_, row + iw * channels_, channels_);
    }
  }
}

}  // namespace crema
