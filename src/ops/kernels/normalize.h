// Normalize: x over its norm, taken over a whole sample or over the channels of each position.
#pragma once

#include <cmath>

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

/// Rows of values that share a norm. In nchw inner is the number of positions, in nhwc it is 1.
class NormRows {
 public:
  int64_t channels = 1, inner = 1, per_sample = 1;
  bool whole_sample = false;
  CREMA_BOTH int64_t row_of(int64_t i) const {
    if (whole_sample) return i / per_sample;
    return i / (channels * inner) * inner + i % inner;
  }
  CREMA_BOTH int64_t channel_of(int64_t i) const { return i / inner % channels; }
  CREMA_BOTH int64_t element(int64_t row, int64_t col) const {
    if (whole_sample) return row * per_sample + col;
    return row / inner * channels * inner + row % inner + col * inner;
  }
  /// The col-th element of a channel.
  CREMA_BOTH int64_t of_channel(int64_t channel, int64_t col) const {
    return (col / inner * channels + channel) * inner + col % inner;
  }
};

/// norm[row] = sqrt(sum x^2 + eps); absolute: sum |x| + eps.
struct NormalizeNorms {
  const float* x;
  float* norm;
  NormRows rows;
  float eps;
  bool absolute;
  CREMA_BOTH float operator()(int64_t row, int64_t col) const {
    const float v = x[rows.element(row, col)];
    return absolute ? std::fabs(v) : v * v;
  }
  CREMA_BOTH void done(int64_t row, float sum) const {
    norm[row] = absolute ? sum + eps : std::sqrt(sum + eps);
  }
};

/// y = scale[channel] * x / norm; scale may be null (1), or one number for all channels (shared).
struct NormalizeForward {
  const float* x;
  const float* norm;
  const float* scale;
  float* y;
  NormRows rows;
  bool shared;
  CREMA_BOTH void operator()(int64_t i) const {
    const float s = scale ? scale[shared ? 0 : rows.channel_of(i)] : 1.0f;
    y[i] = s * x[i] / norm[rows.row_of(i)];
  }
};

/// dot[row] = sum of scale * dy * x.
struct NormalizeDots {
  const float* x;
  const float* dy;
  const float* scale;
  float* dot;
  NormRows rows;
  bool shared;
  CREMA_BOTH float operator()(int64_t row, int64_t col) const {
    const int64_t i = rows.element(row, col);
    const float s = scale ? scale[shared ? 0 : rows.channel_of(i)] : 1.0f;
    return s * dy[i] * x[i];
  }
  CREMA_BOTH void done(int64_t row, float sum) const { dot[row] = sum; }
};

/// dx (+)= scale * dy / norm + (dnorm[row] - dot / norm^2) * (norm by x), the latter x / norm, or
/// the sign of x for absolute norms. dy and dnorm may be null.
struct NormalizeBackward {
  const float* x;
  const float* norm;
  const float* scale;
  const float* dot;
  const float* dy;
  const float* dnorm;
  float* dx;
  NormRows rows;
  bool shared, absolute, accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const int64_t row = rows.row_of(i);
    const float n = norm[row];
    const float sign = x[i] > 0 ? 1.0f : (x[i] < 0 ? -1.0f : 0.0f);
    float by_norm = dnorm ? dnorm[row] : 0.0f;
    float g = 0;
    if (dy) {
      g = (scale ? scale[shared ? 0 : rows.channel_of(i)] : 1.0f) * dy[i] / n;
      by_norm -= dot[row] / (n * n);
    }
    g += by_norm * (absolute ? sign : x[i] / n);
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

/// dscale[channel] (+)= sum of dy * x / norm over the channel, or over everything (shared).
struct NormalizeScale {
  const float* x;
  const float* norm;
  const float* dy;
  float* dscale;
  NormRows rows;
  bool shared, accumulate;
  CREMA_BOTH float operator()(int64_t channel, int64_t col) const {
    const int64_t i = shared ? col : rows.of_channel(channel, col);
    return dy[i] * x[i] / norm[rows.row_of(i)];
  }
  CREMA_BOTH void done(int64_t channel, float sum) const {
    dscale[channel] = accumulate ? dscale[channel] + sum : sum;
  }
};

}  // namespace crema::CREMA_ISA
