// Which class a net chose for which: per-class figures and the confusion matrix of `crema test`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "crema.pb.h"
#include "net/net.h"

namespace crema {

/// The blobs that an Accuracy layer, or else a softmax loss, compares.
struct ScoredBlobs {
  std::string scores, labels;
  int axis = 1;  // of the classes in scores
  std::optional<int> ignored_label;
};

/// Of a net for testing, as written; file stands for it in messages. Throws Error where no layer
/// compares scores with labels.
ScoredBlobs find_scored_blobs(const NetParameter& net, const std::string& file);

class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(ScoredBlobs blobs) : blobs_(std::move(blobs)) {}

  /// Counts the batch of the last forward. A label whose score another class reaches too counts as
  /// taken for that class, as Accuracy counts it. Throws Error for labels that are no class.
  void add(const Net& net);

  /// One line of the log for each class: its recall (per-class accuracy), precision, F1,
  /// intersection over union (right / (labelled + chosen - right)) and number of samples; then
  /// their means over the classes that appear.
  void log_per_class(const std::vector<std::string>& names) const;
  /// CSV: a row for each true class, a column for each chosen one.
  std::string to_csv(const std::vector<std::string>& names) const;

 private:
  int64_t at(size_t label, size_t chosen) const { return counts_[label * classes_ + chosen]; }

  ScoredBlobs blobs_;
  size_t classes_ = 0;
  std::vector<int64_t> counts_;  // label by chosen
};

}  // namespace crema
