// Crops and their boxes.
#include "feed/box_sampling.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace crema {
namespace {

constexpr Box kWhole{0, 0, 1, 1};

/// The part of a that lies in b.
float covered(const Box& a, const Box& b) {
  const float area = box_area(a);
  return area > 0 ? shared_area(a, b) / area : 0;
}

Box draw_box(const Sampler& sampler, RandomStream& random) {
  const float scale = draw_between(random, sampler.min_scale(), sampler.max_scale());
  const float drawn = draw_between(random, sampler.min_aspect_ratio(), sampler.max_aspect_ratio());
  const float ratio = std::min(std::max(drawn, scale * scale), 1 / (scale * scale));
  const float width = std::min(1.0f, scale * std::sqrt(ratio));
  const float height = std::min(1.0f, scale / std::sqrt(ratio));
  const float x = draw_between(random, 0, 1 - width), y = draw_between(random, 0, 1 - height);
  return {x, y, x + width, y + height};
}

bool lies_between(float value, bool has_min, float min, bool has_max, float max) {
  return !(has_min && value < min) && !(has_max && value > max);
}

/// Whether one of the boxes meets one of the constraints that are given; true where none is.
bool is_accepted(const Box& crop, const SampleConstraint& c, const std::vector<LabeledBox>& boxes) {
  const bool overlap = c.has_min_jaccard_overlap() || c.has_max_jaccard_overlap();
  const bool sample = c.has_min_sample_coverage() || c.has_max_sample_coverage();
  const bool object = c.has_min_object_coverage() || c.has_max_object_coverage();
  if (!overlap && !sample && !object) return true;
  return std::any_of(boxes.begin(), boxes.end(), [&](const LabeledBox& b) {
    if (overlap && !lies_between(box_overlap(crop, b.box), c.has_min_jaccard_overlap(),
                                 c.min_jaccard_overlap(), c.has_max_jaccard_overlap(),
                                 c.max_jaccard_overlap())) {
      return false;
    }
    if (sample &&
        !lies_between(covered(crop, b.box), c.has_min_sample_coverage(), c.min_sample_coverage(),
                      c.has_max_sample_coverage(), c.max_sample_coverage())) {
      return false;
    }
    return !object ||
           lies_between(covered(b.box, crop), c.has_min_object_coverage(), c.min_object_coverage(),
                        c.has_max_object_coverage(), c.max_object_coverage());
  });
}

bool is_emitted(const Box& box, const Box& crop, const EmitConstraint& constraint) {
  if (constraint.emit_type() == EmitConstraint::MIN_OVERLAP) {
    return covered(box, crop) > constraint.emit_overlap();
  }
  const float x = (box.xmin + box.xmax) / 2, y = (box.ymin + box.ymax) / 2;
  return crop.xmin <= x && x <= crop.xmax && crop.ymin <= y && y <= crop.ymax;
}

}  // namespace

float draw_between(RandomStream& random, float low, float high) {
  return low + static_cast<float>(random.uniform()) * (high - low);
}

void check_sampler(const BatchSampler& batch_sampler) {
  const Sampler& s = batch_sampler.sampler();
  require(s.min_scale() > 0 && s.min_scale() <= s.max_scale() && s.max_scale() <= 1,
          "sampler: min_scale ", s.min_scale(), " and max_scale ", s.max_scale(),
          " must be above 0, at most 1 and in this order");
  require(s.min_aspect_ratio() > 0 && s.min_aspect_ratio() <= s.max_aspect_ratio(),
          "sampler: min_aspect_ratio ", s.min_aspect_ratio(), " and max_aspect_ratio ",
          s.max_aspect_ratio(), " must be above 0 and in this order");
}

Box draw_crop(const std::vector<BatchSampler>& samplers, const std::vector<LabeledBox>& boxes,
              RandomStream& random) {
  std::vector<Box> found;
  for (const BatchSampler& sampler : samplers) {
    if (!sampler.use_original_image()) continue;
    uint32_t count = 0;
    for (uint32_t trial = 0; trial < sampler.max_trials(); ++trial) {
      if (sampler.has_max_sample() && count >= sampler.max_sample()) break;
      const Box crop = draw_box(sampler.sampler(), random);
      if (!is_accepted(crop, sampler.sample_constraint(), boxes)) continue;
      found.push_back(crop);
      ++count;
    }
  }
  return found.empty() ? kWhole : found[random.below(found.size())];
}

void move_to_crop(const Box& crop, const EmitConstraint* constraint,
                  std::vector<LabeledBox>* boxes) {
  const auto leaves = [&](LabeledBox& b) {
    if (constraint && !is_emitted(b.box, crop, *constraint)) return true;
    if (shared_area(b.box, crop) <= 0) return true;
    b.box = clipped(
        {(b.box.xmin - crop.xmin) / crop.width(), (b.box.ymin - crop.ymin) / crop.height(),
         (b.box.xmax - crop.xmin) / crop.width(), (b.box.ymax - crop.ymin) / crop.height()});
    return box_area(b.box) <= 0;
  };
  boxes->erase(std::remove_if(boxes->begin(), boxes->end(), leaves), boxes->end());
}

void mirror_boxes(std::vector<LabeledBox>* boxes) {
  for (LabeledBox& b : *boxes) {
    const float left = b.box.xmin;
    b.box.xmin = 1 - b.box.xmax;
    b.box.xmax = 1 - left;
  }
}

}  // namespace crema
