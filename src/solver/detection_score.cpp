// Mean average precision.
#include "solver/detection_score.h"

#include <algorithm>

#include "base/error.h"

namespace crema {
namespace {

double eleven_points(const std::vector<double>& precision, const std::vector<double>& recall) {
  double sum = 0;
  for (int point = 0; point <= 10; ++point) {
    double best = 0;
    for (size_t i = 0; i < recall.size(); ++i) {
      if (recall[i] >= point / 10.0) best = std::max(best, precision[i]);
    }
    sum += best / 11;
  }
  return sum;
}

}  // namespace

ApKind ap_kind(const std::string& version) {
  if (version == "Integral") return ApKind::integral;
  if (version == "MaxIntegral") return ApKind::max_integral;
  if (version == "11point") return ApKind::eleven_point;
  fail("ap_version: \"", version, "\" must be Integral, MaxIntegral or 11point");
}

double average_precision(const std::vector<bool>& is_right, int64_t positives, ApKind kind) {
  if (positives <= 0) return 0;
  std::vector<double> precision, recall;
  int64_t right = 0;
  for (size_t i = 0; i < is_right.size(); ++i) {
    right += is_right[i] ? 1 : 0;
    precision.push_back(static_cast<double>(right) / static_cast<double>(i + 1));
    recall.push_back(static_cast<double>(right) / static_cast<double>(positives));
  }
  if (kind == ApKind::eleven_point) return eleven_points(precision, recall);
  if (kind == ApKind::max_integral) {
    for (size_t i = precision.size(); i-- > 1;) {
      precision[i - 1] = std::max(precision[i - 1], precision[i]);
    }
  }
  double area = 0, before = 0;
  for (size_t i = 0; i < recall.size(); ++i) {
    area += precision[i] * (recall[i] - before);
    before = recall[i];
  }
  return area;
}

void DetectionScore::add(std::span<const float> rows) {
  require(rows.size() % kRow == 0, "holds ", rows.size(),
          " values, but the top of DetectionEvaluate has rows of ", kRow);
  for (size_t i = 0; i < rows.size(); i += kRow) {
    const float* row = rows.data() + i;
    if (row[1] < 0) continue;
    Class& c = classes_[static_cast<int>(row[1])];
    if (row[0] < 0) {
      c.positives += static_cast<int64_t>(row[2]);
    } else if (row[3] != 0 || row[4] != 0) {
      c.found.emplace_back(row[2], row[3] != 0);
    }
  }
}

std::map<int, double> DetectionScore::per_class(ApKind kind) const {
  std::map<int, double> scores;
  for (const auto& [label, c] : classes_) {
    if (c.positives == 0 && c.found.empty()) continue;
    std::vector<std::pair<float, bool>> found = c.found;
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<bool> is_right;
    is_right.reserve(found.size());
    for (const auto& [score, right] : found) is_right.push_back(right);
    scores[label] = average_precision(is_right, c.positives, kind);
  }
  return scores;
}

double DetectionScore::mean(ApKind kind) const {
  double sum = 0;
  int count = 0;
  for (const auto& [label, score] : per_class(kind)) {
    if (classes_.at(label).positives == 0) continue;
    sum += score;
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

}  // namespace crema
