// Boxes of detection layers, on the host: coding against prior boxes, matching, suppression (Liu et
// al., "SSD", 2016, section 2.2).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/box.h"
#include "crema.pb.h"

namespace crema {

using BoxCode = PriorBoxParameter::CodeType;

/// How boxes are coded against priors. CORNER: differences of corners; CENTER_SIZE: centre over the
/// prior's size, logarithm of the size's ratio; CORNER_SIZE: differences of corners over the
/// prior's size. Each number is divided by its variance unless the variance is encoded in the
/// target.
struct BoxCoder {
  BoxCode type = PriorBoxParameter::CORNER;
  bool variance_in_target = false;

  void encode(const Box& box, const Box& prior, const float* variance, float* code) const;
  Box decode(const float* code, const Box& prior, const float* variance) const;
};

/// Greedy non-maximum suppression over `order` (indices of boxes, best first): keeps a box whose
/// overlap with every kept one is at most the threshold; with eta below 1 the threshold shrinks by
/// eta after each kept box while it is above 0.5. Leaves the kept indices in `order`.
struct Suppression {
  float threshold = 0.3f, eta = 1, offset = 0;
};
void suppress(std::span<const Box> boxes, const Suppression& rule, std::vector<int>* order);

/// Which box of the picture each prior is matched to: -1 none, -2 left out.
struct MatchRule {
  bool per_prediction = true;  // beyond the best prior of each box: all above the threshold
  float threshold = 0.5f;
  bool skips_crossing = false;  // priors that reach beyond the picture are left out
};
class Matcher {
 public:
  /// Fills match (an index into boxes) and overlap (with the best box), both of priors.size().
  void run(std::span<const Box> boxes, std::span<const Box> priors, const MatchRule& rule,
           int* match, float* overlap);

 private:
  void match_best(size_t boxes, size_t priors, int* match, float* overlap);

  std::vector<float> overlaps_;  // [boxes, priors]
  std::vector<uint8_t> is_matched_;
};

}  // namespace crema
