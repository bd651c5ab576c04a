// One update of all parameters: clip, then a rule per group of equal multipliers, over contiguous
// memory. Owns the history of the rule and gives it in Caffe's order: a blob per parameter, for
// AdaDelta and Adam all first ones, then all second.
#pragma once

#include <string>
#include <vector>

#include "io/blob.h"
#include "net/net.h"
#include "ops/ops.h"
#include "ops/replay.h"

namespace crema {

/// The rule of SolverParameter.type. Throws Error with the nearest type's name.
Rule parse_rule(const std::string& type);

/// Checks type, regularization_type, momentum, momentum2, rms_decay and iter_size. Throws Error
/// with all mistakes.
void check_update_fields(const SolverParameter& param);

class Updater {
 public:
  /// Allocates the history, zeros, on the net's device. The net must outlive the updater.
  Updater(const SolverParameter& param, Net& net);

  /// w -= the rule's step of the gradients that backward left, with `rate` and the iteration's
  /// number before it is counted. Logs a line where clip_gradients scales. Throws Error when the
  /// norm to clip is not finite.
  void update(int iter, float rate);

  /// Zeros for statistics and for parameters that never learn, which count too.
  std::vector<HostBlob> history() const;
  /// Throws Error when the number or a shape of the blobs is not that of history().
  void set_history(const std::vector<HostBlob>& blobs);

 private:
  struct GroupState {
    const Net::Group* group;
    UpdateRule rule;
    Buffer buffer;
    std::vector<Tensor> history;
  };
  struct Place {
    int param;  // by place in Net::params()
    Tensor tensor;
  };

  double gradient_norm() const;
  float clip_factor() const;
  std::vector<Place> places() const;

  Net& net_;
  Rule rule_;
  float momentum_, momentum2_, clip_;
  int iter_size_;
  std::vector<GroupState> groups_;
  Replay replay_;  // of update()'s steps
  Buffer partial_sums_;
};

}  // namespace crema
