// Mean average precision of a detector from the rows of DetectionEvaluate (Everingham et al., "The
// Pascal Visual Object Classes Challenge", 2010).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace crema {

enum class ApKind { integral, max_integral, eleven_point };
/// "Integral", "MaxIntegral" or "11point". Throws Error for another word.
ApKind ap_kind(const std::string& version);

/// Area under precision over recall. is_right: of the detections, best score first; positives: true
/// boxes. integral: sum of precision * recall step; max_integral: with the best precision at any
/// higher recall (VOC 2012); eleven_point: the mean of the best precisions at recall >= 0, 0.1,
/// ..., 1 (VOC 2007).
double average_precision(const std::vector<bool>& is_right, int64_t positives, ApKind kind);

class DetectionScore {
 public:
  static constexpr int kRow = 5;  // values of a row
  /// Takes the rows of one batch: (-1, class, true boxes, -1, -1), then (picture, class, score, is
  /// right, is wrong). Throws Error when they are no such rows.
  void add(std::span<const float> rows);
  /// The average precision of each class that has true boxes, or was detected.
  std::map<int, double> per_class(ApKind kind) const;
  /// The mean over the classes that have true boxes, 0 where there are none.
  /// BVLC: SSD counts classes without true boxes as 0.
  double mean(ApKind kind) const;

 private:
  struct Class {
    int64_t positives = 0;
    std::vector<std::pair<float, bool>> found;  // score, is right
  };
  std::map<int, Class> classes_;
};

}  // namespace crema
