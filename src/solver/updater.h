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
#include "parallel/communicator.h"
#include "solver/loss_scale.h"

namespace crema {

/// What a solver type of our own does beside its rule. AdamW (Loshchilov and Hutter 2019): decay
/// apart from the gradient, w -= rate * (adam + decay * w). LARS (You et al. 2017): SGD whose rate
/// is larc_eta * |w| / (|g| + decay * |w|) for each parameter. LAMB (You et al. 2020): AdamW whose
/// step is as long as rate * |w|. LARS and LAMB leave parameters of one axis (biases, scales) and
/// those of norm 0 to the plain rate.
enum class Extra : uint8_t { none, adamw, lars, lamb };
Extra extra_of(const std::string& type);

/// The rule of SolverParameter.type. Throws Error with the nearest type's name.
Rule parse_rule(const std::string& type);

/// Checks type, regularization_type, momentum and its policy, momentum2, rms_decay, weight decay's
/// policy, larc and iter_size. Throws Error with all mistakes.
void check_update_fields(const SolverParameter& param);

class Updater {
 public:
  /// Allocates the history, zeros, on the net's device. The net must outlive the updater, and so
  /// must the group of ranks that train together, where there is one.
  Updater(const SolverParameter& param, Net& net, Communicator* group = nullptr);

  /// The net's forward and backward, with the sums of gradients over all ranks begun while the
  /// latter is under way: the last ones before update(). Returns the loss.
  float forward_backward_and_sum();

  /// w -= the rule's step of the gradients that backward left (the mean over all ranks'), with
  /// `rate` and the iteration's
  /// number before it is counted. Logs a line where clip_gradients scales. Throws Error when the
  /// norm to clip is not finite. Gradients have been multiplied by the scale, which is undone here
  /// and adapted: where one is in use and the gradients are not finite, the step is skipped, with a
  /// line of the log. What the next backward multiplies by is left in the step scalars.
  void update(int iter, float rate, LossScale& scale);

  /// Zeros for statistics and for parameters that never learn, which count too.
  std::vector<HostBlob> history() const;
  /// Throws Error when the number or a shape of the blobs is not that of history().
  void set_history(const std::vector<HostBlob>& blobs);

 private:
  /// A member's share of its group.
  struct Member {
    Tensor value, gradient;
    std::vector<Tensor> history;
    int64_t offset;
  };
  struct GroupState {
    const Net::Group* group;
    UpdateRule rule;
    Buffer buffer;
    std::vector<Tensor> history;
    Buffer scratch;  // LAMB: the step before its length is known, zeros between updates
    std::vector<Member> members;  // where a rule goes by parameter
  };
  /// What norms need on the host, kept so that no update allocates.
  struct Norms {
    std::vector<CTensor> tensors;
    std::vector<float> pieces;
    std::vector<double> sums;
  };
  struct Place {
    int param;  // by place in Net::params()
    Tensor tensor;
  };

  Member member(const GroupState& state, int param) const;
  /// Of each of norms_.tensors.
  const std::vector<double>& sums_of_squares() const;
  double gradient_norm() const;
  void join_gradients();
  int ranks() const { return group_ != nullptr ? group_->ranks() : 1; }
  void update_by_layer(const GroupState& state, UpdateRule rule, const StepScalars& step);
  void update_adamw(const GroupState& state, UpdateRule rule);
  void update_lamb(const GroupState& state, UpdateRule rule, float rate);
  float clip_factor(double norm) const;
  std::vector<Place> places() const;

  Net& net_;
  Communicator* group_;
  SolverParameter param_;  // without nets
  Rule rule_;
  Extra extra_;
  std::vector<GroupState> groups_;
  Replay replay_;  // of update()'s steps
  Buffer partial_sums_;
  mutable Norms norms_;
  bool are_sums_begun_ = false;
};

}  // namespace crema
