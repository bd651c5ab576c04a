// The weight gradient of a convolution whose groups have one channel each: for each tap and channel
// the dot product of dy and of x shifted by the tap, row by row; vectors run over channels.
#include "ops/cpu/isa/loops.h"
#include "ops/cpu/isa/micro_tile.h"

namespace crema::CREMA_ISA {
namespace {

constexpr int kTogether = 3, kVectors = 4;  // taps and vectors whose sums stay in registers

/// Neighbouring places of one row: n times dy and x, each so many elements after the last.
struct Run {
  const float *dy, *x;
  int64_t n, dy_step, x_step;
};

/// sums[tap * sum_step + channel] += the products of a run, for kTaps taps that lie tap_step apart.
template <int kTaps, int kCount>
void add_dots(const Run& run, int64_t tap_step, float* sums, int64_t sum_step) {
  Vector sum[kTaps][kCount];
  for (int t = 0; t < kTaps; ++t) {
    for (int v = 0; v < kCount; ++v) sum[t][v] = Vector{};
  }
  const float *dy = run.dy, *x = run.x;
  for (int64_t i = 0; i < run.n; ++i, dy += run.dy_step, x += run.x_step) {
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) {
      const Vector g = load(dy + v * kWidth);
#pragma GCC unroll 4
      for (int t = 0; t < kTaps; ++t) sum[t][v] += g * load(x + t * tap_step + v * kWidth);
    }
  }
  for (int t = 0; t < kTaps; ++t) {
    for (int v = 0; v < kCount; ++v) {
      float* to = sums + t * sum_step + v * kWidth;
      store(to, load(to) + sum[t][v]);
    }
  }
}

/// One row of the window over one row of dy, for kCount vectors of channels.
template <int kCount>
struct RowSums {
  const ConvDepthwiseArgs& a;
  const float *dy, *x;  // the row of dy; x's row where its first element would lie under tap 0
  float* sums;          // of the row's taps

  /// Output places for which tap w lies in the picture.
  void range_of(int64_t w, int64_t& begin, int64_t& end) const {
    const int64_t shift = w * a.dilation[1] - a.pad[1], stride = a.stride[1];
    begin = shift < 0 ? (stride - 1 - shift) / stride : 0;
    end = shift < a.width ? lesser((a.width - 1 - shift) / stride + 1, a.out_width) : 0;
  }
  template <int kTaps>
  void add(int64_t w, int64_t begin, int64_t end) const {
    if (begin >= end) return;
    const int64_t x_at = begin * a.stride[1] - a.pad[1] + w * a.dilation[1];
    const Run run{dy + begin * a.channels, x + x_at * a.channels, end - begin, a.channels,
                  a.stride[1] * a.channels};
    add_dots<kTaps, kCount>(run, a.dilation[1] * a.channels, sums + w * a.channels, a.channels);
  }
  void add_single(int64_t w, int64_t begin, int64_t end) const {
    int64_t first, last;
    range_of(w, first, last);
    add<1>(w, first > begin ? first : begin, lesser(last, end));
  }
  void run() const {
    int64_t w = 0;
    for (; w + kTogether <= a.kernel[1]; w += kTogether) {
      int64_t begin, end, unused;
      range_of(w, begin, unused);
      range_of(w + kTogether - 1, unused, end);
      if (begin > end) begin = end;
      add<kTogether>(w, begin, end);
      for (int t = 0; t < kTogether; ++t) {
        add_single(w + t, 0, begin);
        add_single(w + t, end, a.out_width);
      }
    }
    for (; w < a.kernel[1]; ++w) add_single(w, 0, a.out_width);
  }
};

/// Row oh of picture n.
template <int kCount>
void add_row(const ConvDepthwiseArgs& a, int64_t n, int64_t oh, int64_t channel) {
  const float* dy = a.dy + (n * a.out_height + oh) * a.out_width * a.channels + channel;
  for (int64_t h = 0; h < a.kernel[0]; ++h) {
    const int64_t ih = oh * a.stride[0] - a.pad[0] + h * a.dilation[0];
    if (ih < 0 || ih >= a.height) continue;
    const float* x = a.x + (n * a.height + ih) * a.width * a.channels + channel;
    float* sums = a.sums + h * a.kernel[1] * a.channels + channel;
    RowSums<kCount>{a, dy, x, sums}.run();
  }
}

}  // namespace

void conv_depthwise(const ConvDepthwiseArgs& a, int64_t begin, int64_t end) {
  for (int64_t t = 0; t < a.kernel[0] * a.kernel[1]; ++t) {
    for (int64_t c = begin; c < end; ++c) a.sums[t * a.channels + c] = 0;
  }
  for (int64_t n = 0; n < a.batch; ++n) {
    for (int64_t oh = 0; oh < a.out_height; ++oh) {
      int64_t c = begin;
      for (; c + kVectors * kWidth <= end; c += kVectors * kWidth) add_row<kVectors>(a, n, oh, c);
      for (; c < end; c += 2 * kWidth) add_row<2>(a, n, oh, c);
    }
  }
}

}  // namespace crema::CREMA_ISA
