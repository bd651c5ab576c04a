// Boxes on a picture, corners as fractions of its sides unless said otherwise.
#pragma once

#include <algorithm>

namespace crema {

struct Box {
  float xmin = 0, ymin = 0, xmax = 0, ymax = 0;
  float width() const { return xmax - xmin; }
  float height() const { return ymax - ymin; }
};

/// Area; 0 for a box turned inside out. offset: 1 where corners are pixel indices, both included.
inline float box_area(const Box& box, float offset = 0) {
  if (box.xmax < box.xmin || box.ymax < box.ymin) return 0;
  return (box.width() + offset) * (box.height() + offset);
}

/// Area that two boxes share; 0 for boxes that only touch.
inline float shared_area(const Box& a, const Box& b, float offset = 0) {
  const float width = std::min(a.xmax, b.xmax) - std::max(a.xmin, b.xmin) + offset;
  const float height = std::min(a.ymax, b.ymax) - std::max(a.ymin, b.ymin) + offset;
  return width > 0 && height > 0 ? width * height : 0;
}

/// Intersection over union (Jaccard).
inline float box_overlap(const Box& a, const Box& b, float offset = 0) {
  const float shared = shared_area(a, b, offset);
  return shared > 0 ? shared / (box_area(a, offset) + box_area(b, offset) - shared) : 0;
}

/// Cut to [0, 1].
inline Box clipped(const Box& box) {
  const auto cut = [](float v) { return std::max(std::min(v, 1.0f), 0.0f); };
  return {cut(box.xmin), cut(box.ymin), cut(box.xmax), cut(box.ymax)};
}

}  // namespace crema
