// Batches add up; the score is worked out once, over all of them.
#include "detections.h"

#include <gflags/gflags.h>
#include <glog/logging.h>

#include "base/error.h"

DEFINE_string(ap_version, "Integral",
              "test: how average precision is worked out: Integral, MaxIntegral or 11point");

namespace crema {

DetectionTest::DetectionTest(const NetParameter& net) {
  try {
    kind_ = ap_kind(FLAGS_ap_version);
  } catch (const Error& error) {
    throw error.at("--ap_version");
  }
  for (const LayerParameter& layer : net.layer()) {
    if (layer.type() == "DetectionEvaluate") tops_.insert(layer.top().begin(), layer.top().end());
  }
}

void DetectionTest::take(const std::vector<NetOutput>& outputs,
                         std::vector<std::vector<double>>& values) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = outputs[i].name;
    if (tops_.count(name) == 0) continue;
    scores_[name].add(std::vector<float>(values[i].begin(), values[i].end()));
    values[i].clear();
  }
}

void DetectionTest::log(bool per_class, const std::vector<std::string>& names) const {
  for (const auto& [name, score] : scores_) {
    if (per_class) {
      for (const auto& [label, precision] : score.per_class(kind_)) {
        const auto k = static_cast<size_t>(label);
        LOG(INFO) << "Class " << label << (k < names.size() ? " (" + names[k] + ")" : "")
                  << ": average precision = " << static_cast<float>(precision);
      }
    }
    LOG(INFO) << name << " = " << static_cast<float>(score.mean(kind_))
              << " (mean average precision, " << FLAGS_ap_version << ")";
  }
}

}  // namespace crema
