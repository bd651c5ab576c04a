// ROIPooling (Girshick, "Fast R-CNN", 2015) and PSROIPooling (Dai et al., "R-FCN", 2016). Regions
// are rows (picture, x1, y1, x2, y2).
#pragma once

#include <cmath>

#include "ops/kernels/label.h"

namespace crema::CREMA_ISA {

CREMA_BOTH inline int64_t clamped(float v, int64_t low, int64_t high) {
  if (!(v > static_cast<float>(low))) return low;
  return v < static_cast<float>(high) ? static_cast<int64_t>(v) : high;
}

/// Where one bin of a region lies on the plane: rows [top, bottom), columns [left, right).
class RoiBin {
 public:
  int64_t top, bottom, left, right;
};

/// What both poolings know of regions and planes.
class RoiGrid {
 public:
  const float* rois;
  int64_t height, width, pooled_h, pooled_w;
  float scale;
  int batch;

  /// Corners rounded to whole cells, both included; at least one cell.
  CREMA_BOTH RoiBin max_bin(int64_t roi, int64_t ph, int64_t pw) const {
    const float* r = rois + roi * 5;
    const float left = std::round(r[1] * scale), top = std::round(r[2] * scale);
    const float right = std::round(r[3] * scale), bottom = std::round(r[4] * scale);
    const float high = bottom - top + 1 > 1 ? bottom - top + 1 : 1;
    const float wide = right - left + 1 > 1 ? right - left + 1 : 1;
    return bin_of({left, top, wide, high}, ph, pw);
  }
  /// Corners rounded on the picture, the last one included, then scaled; at least 0.1 cells.
  CREMA_BOTH RoiBin average_bin(int64_t roi, int64_t ph, int64_t pw) const {
    const float* r = rois + roi * 5;
    const float left = std::round(r[1]) * scale, top = std::round(r[2]) * scale;
    const float right = (std::round(r[3]) + 1) * scale, bottom = (std::round(r[4]) + 1) * scale;
    const float high = bottom - top > 0.1f ? bottom - top : 0.1f;
    const float wide = right - left > 0.1f ? right - left : 0.1f;
    return bin_of({left, top, wide, high}, ph, pw);
  }
  CREMA_BOTH int picture(int64_t roi) const {
    const int n = label_of(rois[roi * 5]);
    return n >= 0 && n < batch ? n : -1;
  }

 private:
  struct Region {
    float left, top, wide, high;
  };
  CREMA_BOTH RoiBin bin_of(const Region& r, int64_t ph, int64_t pw) const {
    const float bin_h = r.high / static_cast<float>(pooled_h);
    const float bin_w = r.wide / static_cast<float>(pooled_w);
    const auto y = static_cast<float>(ph), x = static_cast<float>(pw);
    return {clamped(std::floor(y * bin_h + r.top), 0, height),
            clamped(std::ceil((y + 1) * bin_h + r.top), 0, height),
            clamped(std::floor(x * bin_w + r.left), 0, width),
            clamped(std::ceil((x + 1) * bin_w + r.left), 0, width)};
  }
};

/// y [R, C, ph, pw]: the largest value of each bin, 0 for an empty one; at: its place in the plane,
/// or -1.
struct RoiMaxForward {
  const float* x;
  float* y;
  int32_t* at;
  Fault* fault;
  RoiGrid grid;
  int64_t channels;
  int32_t layer;
  CREMA_BOTH void operator()(int64_t i) const {
    const int64_t pw = i % grid.pooled_w, ph = i / grid.pooled_w % grid.pooled_h;
    const int64_t c = i / (grid.pooled_w * grid.pooled_h) % channels;
    const int64_t roi = i / (grid.pooled_w * grid.pooled_h * channels);
    const int n = grid.picture(roi);
    float best = 0;
    int64_t place = -1;
    if (n < 0) {
      report_fault(fault, layer, roi, grid.rois[roi * 5]);
    } else {
      const RoiBin bin = grid.max_bin(roi, ph, pw);
      const float* plane = x + (n * channels + c) * grid.height * grid.width;
      for (int64_t h = bin.top; h < bin.bottom; ++h) {
        for (int64_t w = bin.left; w < bin.right; ++w) {
          const float v = plane[h * grid.width + w];
          if (place >= 0 && !(v > best)) continue;
          best = v;
          place = h * grid.width + w;
        }
      }
    }
    y[i] = best;
    at[i] = static_cast<int32_t>(place);
  }
};

/// dx += dy at the places of the maxima; one channel of all pictures, in the order of the regions.
struct RoiMaxBackward {
  const float* dy;
  const int32_t* at;
  float* dx;
  RoiGrid grid;
  int64_t channels, regions;
  CREMA_BOTH void operator()(int64_t c) const {
    const int64_t bins = grid.pooled_h * grid.pooled_w;
    for (int64_t roi = 0; roi < regions; ++roi) {
      const int n = grid.picture(roi);
      if (n < 0) continue;
      float* plane = dx + (n * channels + c) * grid.height * grid.width;
      for (int64_t i = (roi * channels + c) * bins; i < (roi * channels + c + 1) * bins; ++i) {
        if (at[i] >= 0) plane[at[i]] += dy[i];
      }
    }
  }
};

/// y [R, D, g, g]: the mean of each bin, taken from the channel of its own, (d g + ph) g + pw.
struct PsRoiForward {
  const float* x;
  float* y;
  Fault* fault;
  RoiGrid grid;
  int64_t outputs;
  int32_t layer;
  CREMA_BOTH void operator()(int64_t i) const {
    const int64_t group = grid.pooled_w;
    const int64_t pw = i % group, ph = i / group % group;
    const int64_t channel = i % (group * group * outputs);
    const int64_t roi = i / (group * group * outputs);
    const int n = grid.picture(roi);
    y[i] = 0;
    if (n < 0) {
      report_fault(fault, layer, roi, grid.rois[roi * 5]);
      return;
    }
    const RoiBin bin = grid.average_bin(roi, ph, pw);
    const int64_t cells = (bin.bottom - bin.top) * (bin.right - bin.left);
    if (bin.bottom <= bin.top || bin.right <= bin.left) return;
    const float* plane = x + (n * group * group * outputs + channel) * grid.height * grid.width;
    float sum = 0;
    for (int64_t h = bin.top; h < bin.bottom; ++h) {
      for (int64_t w = bin.left; w < bin.right; ++w) sum += plane[h * grid.width + w];
    }
    y[i] = sum / static_cast<float>(cells);
  }
};

/// dx += dy over the cells of each bin; one channel of all pictures, in the order of the regions.
struct PsRoiBackward {
  const float* dy;
  float* dx;
  RoiGrid grid;
  int64_t outputs, regions;
  CREMA_BOTH void operator()(int64_t channel) const {
    const int64_t group = grid.pooled_w, channels = group * group * outputs;
    const int64_t pw = channel % group, ph = channel / group % group;
    for (int64_t roi = 0; roi < regions; ++roi) {
      const int n = grid.picture(roi);
      if (n < 0) continue;
      const RoiBin bin = grid.average_bin(roi, ph, pw);
      if (bin.bottom <= bin.top || bin.right <= bin.left) continue;
      const int64_t cells = (bin.bottom - bin.top) * (bin.right - bin.left);
      const float g = dy[roi * channels + channel] / static_cast<float>(cells);
      float* plane = dx + (n * channels + channel) * grid.height * grid.width;
      for (int64_t h = bin.top; h < bin.bottom; ++h) {
        for (int64_t w = bin.left; w < bin.right; ++w) plane[h * grid.width + w] += g;
      }
    }
  }
};

}  // namespace crema::CREMA_ISA
