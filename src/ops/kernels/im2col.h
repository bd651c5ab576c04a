// Im2col: every window of x laid out as a column: y [N, C * window, out...], zero where a window
// overlaps the padding.
#pragma once

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

/// The geometry along up to 8 spatial axes, outermost first.
class Windows {
 public:
  int axes = 0;
  int64_t size[8], out[8], kernel[8], stride[8], pad[8], dilation[8];
  int64_t window = 1;   // elements of one window
  int64_t outputs = 1;  // windows per plane
};

/// One element of y.
struct Im2colForward {
  const float* x;
  float* y;
  Windows w;
  CREMA_BOTH void operator()(int64_t i) const {
    int64_t position[8];
    int64_t rest = i;
    for (int a = w.axes - 1; a >= 0; --a) {
      position[a] = rest % w.out[a] * w.stride[a] - w.pad[a];
      rest /= w.out[a];
    }
    for (int a = w.axes - 1; a >= 0; --a) {
      position[a] += rest % w.kernel[a] * w.dilation[a];
      rest /= w.kernel[a];
    }
    bool is_inside = true;
    for (int a = 0; a < w.axes; ++a) {
      is_inside = is_inside && position[a] >= 0 && position[a] < w.size[a];
      rest = rest * w.size[a] + position[a];
    }
    y[i] = is_inside ? x[rest] : 0.0f;
  }
};

/// One element of dx: the sum over all places of y that it was copied to.
struct Im2colBackward {
  const float* dy;
  float* dx;
  Windows w;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    int64_t position[8];
    int64_t plane = i;
    for (int a = w.axes - 1; a >= 0; --a) {
      position[a] = plane % w.size[a];
      plane /= w.size[a];
    }
    float sum = 0;
    for (int64_t k = 0; k < w.window; ++k) {
      const int64_t place = output_place(position, k);
      if (place >= 0) sum += dy[(plane * w.window + k) * w.outputs + place];
    }
    dx[i] = accumulate ? dx[i] + sum : sum;
  }
  /// Which window holds the position at its element k; -1: none.
  CREMA_BOTH int64_t output_place(const int64_t* position, int64_t k) const {
    int64_t place = 0, step = 1;
    for (int a = w.axes - 1; a >= 0; --a) {
      const int64_t start = position[a] + w.pad[a] - k % w.kernel[a] * w.dilation[a];
      k /= w.kernel[a];
      if (start < 0 || start % w.stride[a] != 0 || start / w.stride[a] >= w.out[a]) return -1;
      place += start / w.stride[a] * step;
      step *= w.out[a];
    }
    return place;
  }
};

}  // namespace crema::CREMA_ISA
