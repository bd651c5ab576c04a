// One rank's end of a group that trains one net together: sums over all ranks. This one goes
// through host memory, whatever the devices are; nccl/ has one between GPUs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ops/ops.h"
#include "parallel/thread_group.h"

namespace crema {

/// Every call is made by all ranks, in the same order and with equal sizes; each waits for the
/// others and throws GroupBroken when one of them has failed. All ranks get the same bits: terms
/// are added in the order of ranks.
class Communicator {
 public:
  /// The group must outlive its communicators.
  Communicator(ThreadGroup& group, int rank) : group_(group), rank_(rank) {}
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return group_.ranks(); }
  void meet() { group_.meet(); }

  /// How sums are made, for the log.
  virtual std::string describe() const { return "through host memory"; }
  /// x becomes the sum of all ranks' x, f32 of one count, in the memory of this rank's device:
  /// before whatever `ops` is asked for next.
  virtual void sum(Ops& ops, const Tensor& x);
  /// As sum(), but perhaps beside what `ops` is asked for next: x is as it was, or summed, until
  /// finish_sums(), and must not be written.
  virtual void begin_sum(Ops& ops, const Tensor& x) { sum(ops, x); }
  /// All sums that were begun come before whatever `ops` is asked for next.
  virtual void finish_sums(Ops&) {}
  /// The same for values on the host.
  void sum(std::span<double> values);

 protected:
  ThreadGroup& group_;

 private:
  int rank_;
  std::vector<float> staging_;  // of devices whose memory is not the host's
  std::vector<double> own_;
};

}  // namespace crema
