// Boxes of detection layers.
#include "layers/boxes.h"

#include <algorithm>
#include <cmath>

namespace crema {
namespace {

constexpr int kNone = -1, kLeftOut = -2;
constexpr float kSmallestOverlap = 1e-6f;

struct Center {
  float x, y, width, height;
};
Center center_of(const Box& box) {
  return {(box.xmin + box.xmax) / 2, (box.ymin + box.ymax) / 2, box.width(), box.height()};
}

bool crosses_border(const Box& box) {
  return box.xmin < 0 || box.xmin > 1 || box.ymin < 0 || box.ymin > 1 || box.xmax < 0 ||
         box.xmax > 1 || box.ymax < 0 || box.ymax > 1;
}

}  // namespace

void BoxCoder::encode(const Box& box, const Box& prior, const float* variance, float* code) const {
  if (type == PriorBoxParameter::CENTER_SIZE) {
    const Center b = center_of(box), p = center_of(prior);
    code[0] = (b.x - p.x) / p.width;
    code[1] = (b.y - p.y) / p.height;
    code[2] = std::log(b.width / p.width);
    code[3] = std::log(b.height / p.height);
  } else {
    const bool by_size = type == PriorBoxParameter::CORNER_SIZE;
    const float width = by_size ? prior.width() : 1, height = by_size ? prior.height() : 1;
    code[0] = (box.xmin - prior.xmin) / width;
    code[1] = (box.ymin - prior.ymin) / height;
    code[2] = (box.xmax - prior.xmax) / width;
    code[3] = (box.ymax - prior.ymax) / height;
  }
  if (variance_in_target) return;
  for (int i = 0; i < 4; ++i) code[i] /= variance[i];
}

Box BoxCoder::decode(const float* code, const Box& prior, const float* variance) const {
  float c[4];
  for (int i = 0; i < 4; ++i) c[i] = variance_in_target ? code[i] : variance[i] * code[i];
  if (type == PriorBoxParameter::CENTER_SIZE) {
    const Center p = center_of(prior);
    const float x = c[0] * p.width + p.x, y = c[1] * p.height + p.y;
    const float width = std::exp(c[2]) * p.width, height = std::exp(c[3]) * p.height;
    return {x - width / 2, y - height / 2, x + width / 2, y + height / 2};
  }
  const bool by_size = type == PriorBoxParameter::CORNER_SIZE;
  const float width = by_size ? prior.width() : 1, height = by_size ? prior.height() : 1;
  return {prior.xmin + c[0] * width, prior.ymin + c[1] * height, prior.xmax + c[2] * width,
          prior.ymax + c[3] * height};
}

void suppress(std::span<const Box> boxes, const Suppression& rule, std::vector<int>* order) {
  float threshold = rule.threshold;
  size_t kept = 0;
  for (size_t i = 0; i < order->size(); ++i) {
    const int candidate = (*order)[i];
    const bool stays = std::all_of(
        order->begin(), order->begin() + static_cast<std::ptrdiff_t>(kept), [&](int other) {
          return box_overlap(boxes[static_cast<size_t>(candidate)],
                             boxes[static_cast<size_t>(other)], rule.offset) <= threshold;
        });
    if (!stays) continue;
    (*order)[kept++] = candidate;
    if (rule.eta < 1 && threshold > 0.5f) threshold *= rule.eta;
  }
  order->resize(kept);
}

void Matcher::run(std::span<const Box> boxes, std::span<const Box> priors, const MatchRule& rule,
                  int* match, float* overlap) {
  overlaps_.assign(boxes.size() * priors.size(), 0);
  std::fill_n(match, priors.size(), kNone);
  std::fill_n(overlap, priors.size(), 0.0f);
  for (size_t p = 0; p < priors.size(); ++p) {
    if (rule.skips_crossing && crosses_border(priors[p])) {
      match[p] = kLeftOut;
      continue;
    }
    for (size_t b = 0; b < boxes.size(); ++b) {
      const float o = box_overlap(priors[p], boxes[b]);
      if (o <= kSmallestOverlap) continue;
      overlaps_[b * priors.size() + p] = o;
      overlap[p] = std::max(overlap[p], o);
    }
  }
  match_best(boxes.size(), priors.size(), match, overlap);
  if (!rule.per_prediction) return;
  for (size_t p = 0; p < priors.size(); ++p) {
    if (match[p] != kNone || overlap[p] < rule.threshold) continue;
    for (size_t b = 0; b < boxes.size(); ++b) {
      const float o = overlaps_[b * priors.size() + p];
      if (o > 0 && o == overlap[p]) {
        match[p] = static_cast<int>(b);
        break;
      }
    }
  }
}

/// Pairs the box and the prior that overlap most, among those not paired, until none is left.
void Matcher::match_best(size_t boxes, size_t priors, int* match, float* overlap) {
  is_matched_.assign(boxes, 0);
  for (size_t round = 0; round < boxes; ++round) {
    float best = 0;
    size_t best_box = 0, best_prior = 0;
    for (size_t p = 0; p < priors; ++p) {
      if (match[p] != kNone) continue;
      for (size_t b = 0; b < boxes; ++b) {
        const float o = overlaps_[b * priors + p];
        if (is_matched_[b] || o <= best) continue;
        best = o;
        best_box = b;
        best_prior = p;
      }
    }
    if (best == 0) return;
    match[best_prior] = static_cast<int>(best_box);
    overlap[best_prior] = best;
    is_matched_[best_box] = 1;
  }
}

}  // namespace crema
