// Axpy: scale[sample, channel] * x + y. plane: the elements of one channel of a sample, in the
// order of memory.
#pragma once

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

/// In nchw inner is H * W, in nhwc 1.
class ChannelOfSample {
 public:
  int64_t channels, inner, per_sample;
  CREMA_BOTH int64_t of(int64_t i) const {
    return i / per_sample * channels + i / inner % channels;
  }
  /// The col-th element of the row-th (sample, channel).
  CREMA_BOTH int64_t element(int64_t row, int64_t col) const {
    const int64_t sample = row / channels, channel = row % channels;
    return sample * per_sample + (col / inner * channels + channel) * inner + col % inner;
  }
};

struct AxpyForward {
  const float* scale;
  const float* x;
  const float* y;
  float* sum;
  ChannelOfSample place;
  CREMA_BOTH void operator()(int64_t i) const { sum[i] = scale[place.of(i)] * x[i] + y[i]; }
};

/// dx (+)= scale * dy.
struct AxpyGradient {
  const float* scale;
  const float* dy;
  float* dx;
  ChannelOfSample place;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const float g = scale[place.of(i)] * dy[i];
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

/// dscale (+)= sum of dy * x.
struct AxpyScaleGradient {
  const float* x;
  const float* dy;
  float* dscale;
  ChannelOfSample place;
  bool accumulate;
  CREMA_BOTH float operator()(int64_t row, int64_t col) const {
    const int64_t i = place.element(row, col);
    return x[i] * dy[i];
  }
  CREMA_BOTH void done(int64_t row, float sum) const {
    dscale[row] = accumulate ? dscale[row] + sum : sum;
  }
};

}  // namespace crema::CREMA_ISA
