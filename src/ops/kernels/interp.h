// Interp: bilinear resizing whose corner values stay at the corners.
#pragma once

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

/// Where the four neighbours of an output lie in the (cropped) plane, and what they weigh.
class InterpGrid {
 public:
  int64_t height, width;         // of a whole plane of x
  int64_t crop, used_h, used_w;  // rows and columns cut off at each begin; what is used
  int64_t out_h, out_w;
  /// Calls take(place in the plane of x, weight) for output (h, w).
  template <class Take>
  CREMA_BOTH void visit(int64_t h, int64_t w, const Take& take) const {
    const float y = out_h > 1 ? static_cast<float>(h) * static_cast<float>(used_h - 1) /
                                    static_cast<float>(out_h - 1)
                              : 0.0f;
    const float x = out_w > 1 ? static_cast<float>(w) * static_cast<float>(used_w - 1) /
                                    static_cast<float>(out_w - 1)
                              : 0.0f;
    const int64_t y0 = static_cast<int64_t>(y), x0 = static_cast<int64_t>(x);
    const int64_t y1 = y0 < used_h - 1 ? y0 + 1 : y0, x1 = x0 < used_w - 1 ? x0 + 1 : x0;
    const float v = y - static_cast<float>(y0), u = x - static_cast<float>(x0);
    take(place(y0, x0), (1 - v) * (1 - u));
    take(place(y0, x1), (1 - v) * u);
    take(place(y1, x0), v * (1 - u));
    take(place(y1, x1), v * u);
  }

 private:
  CREMA_BOTH int64_t place(int64_t h, int64_t w) const { return (h + crop) * width + w + crop; }
};

struct InterpForward {
  const float* x;
  float* y;
  InterpGrid grid;
  CREMA_BOTH void operator()(int64_t i) const {
    const int64_t w = i % grid.out_w, h = i / grid.out_w % grid.out_h;
    const float* plane = x + i / (grid.out_w * grid.out_h) * grid.height * grid.width;
    float sum = 0;
    grid.visit(h, w, [&](int64_t at, float weight) { sum += weight * plane[at]; });
    y[i] = sum;
  }
};

/// dx += for one plane, in the order of the outputs.
struct InterpBackward {
  const float* dy;
  float* dx;
  InterpGrid grid;
  CREMA_BOTH void operator()(int64_t p) const {
    float* plane = dx + p * grid.height * grid.width;
    const float* from = dy + p * grid.out_h * grid.out_w;
    for (int64_t h = 0; h < grid.out_h; ++h) {
      for (int64_t w = 0; w < grid.out_w; ++w) {
        const float g = from[h * grid.out_w + w];
        grid.visit(h, w, [&](int64_t at, float weight) { plane[at] += weight * g; });
      }
    }
  }
};

}  // namespace crema::CREMA_ISA
