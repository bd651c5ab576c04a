// The score of a detector in `crema test`: mean average precision of what DetectionEvaluate counts.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "crema.pb.h"
#include "net/net.h"
#include "solver/detection_score.h"

namespace crema {

class DetectionTest {
 public:
  /// Of a net in today's form. Reads --ap_version; throws Error for an unknown one.
  explicit DetectionTest(const NetParameter& net);

  /// Whether the net has a DetectionEvaluate layer.
  bool is_needed() const { return !tops_.empty(); }
  /// Takes a batch's counts out of the outputs' values, which have no mean: nothing is left there.
  void take(const std::vector<NetOutput>& outputs, std::vector<std::vector<double>>& values);
  /// A line of the log for each output, before it one for each class where per_class says so.
  void log(bool per_class, const std::vector<std::string>& names) const;

 private:
  ApKind kind_;
  std::set<std::string> tops_;
  std::map<std::string, DetectionScore> scores_;  // by top
};

}  // namespace crema
