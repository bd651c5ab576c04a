// Calls that repeat: done as they are the first time, recorded the second time, and replayed from
// then on as one, where the device can record.
#pragma once

#include "ops/ops.h"

namespace crema {

class Replay {
 public:
  /// calls() makes the same calls of ops each time, with the same pointers and numbers, until
  /// forget().
  /// Device is an Ops, or what can record like one.
  template <class Device, class Calls>
  void run(Device& ops, const Calls& calls) {
    if (recording_) return ops.replay(recording_);
    if (!ops.can_record() || !was_run_) {
      was_run_ = true;
      return calls();
    }
    ops.begin_recording();
    try {
      calls();
    } catch (...) {
      ops.end_recording();
      throw;
    }
    recording_ = ops.end_recording();
    ops.replay(recording_);
  }

  /// The calls are others from now on.
  void forget() {
    recording_ = nullptr;
    was_run_ = false;
  }

 private:
  Recording recording_;
  bool was_run_ = false;  // what is made at a first call (a library's plan) is there
};

}  // namespace crema
