// Inside lint: the list that rules add to, and the rules about records.
#pragma once

#include <string>
#include <vector>

#include "crema.pb.h"
#include "net/lint.h"

namespace crema {

class LintList {
 public:
  explicit LintList(std::string file) : file_(std::move(file)) {}
  /// A trap of one layer.
  void warn(const char* rule, const LayerParameter& layer, const std::string& text);
  /// What will stop a run.
  void fail(const char* rule, const LayerParameter& layer, const std::string& text);
  /// Adds what is not in the list already.
  void add(const Finding& finding);
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  std::string file_;
  std::vector<Finding> findings_;
};

/// Looks at the first records of layer i where it reads any: order of labels, labels beyond the
/// classes, channel order of the mean.
void data_rules(const NetParameter& net, int i, LintList& out);

}  // namespace crema
