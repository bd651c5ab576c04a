// Threads of one process that work in step: where they wait for each other, and how the end of one
// ends all.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"

namespace crema {

/// Another thread of the group has failed; its own Error says why.
class GroupBroken : public Error {
 public:
  using Error::Error;
};

class ThreadGroup {
 public:
  explicit ThreadGroup(int ranks)
      : given_(static_cast<size_t>(ranks)), everything_(given_.size()) {}
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  int ranks() const { return static_cast<int>(given_.size()); }
  /// Waits until every rank has come. Throws GroupBroken once one of them has called give_up().
  void meet();
  /// As meet(), and gives what each rank gave, by rank; valid until this rank's next call.
  const std::vector<void*>& exchange(int rank, void* own);
  /// Nobody waits for this thread any more: every other one gets GroupBroken where it waits, or
  /// comes to wait.
  void give_up(const std::string& reason) noexcept;
  /// Called once, in the thread that gives up first (at once where one has): to end what a thread
  /// may wait for elsewhere.
  void when_broken(std::function<void()> action);

 private:
  void wait(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable all_here_;
  std::vector<void*> given_, everything_;
  size_t here_ = 0;
  uint64_t meetings_ = 0;
  bool is_broken_ = false;
  std::string reason_;
  std::vector<std::function<void()>> actions_;
};

}  // namespace crema
