// Work on numbered items by several threads, used in the order of their numbers whatever thread was
// faster.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace crema {

/// Threads worth starting here: those the machine offers, at least 1.
int hardware_threads();

/// Runs items 0, 1, 2, ... below `end`, at most `window` of them ahead of what was released.
/// Nothing is allocated after construction. Destruction waits only for the items in hand.
class OrderedWorkers {
 public:
  struct Job {
    /// Called in item order, one at a time, before work(item): reads what cannot be read in
    /// parallel. May be empty.
    std::function<void(uint64_t item)> draw;
    std::function<void(uint64_t item, int worker)> work;
    int threads = 1;
    uint64_t window = 1;
    uint64_t end = UINT64_MAX;
    const char* name = "worker";  // of the threads, with a number, in a trace
  };

  explicit OrderedWorkers(Job job);
  ~OrderedWorkers();
  OrderedWorkers(const OrderedWorkers&) = delete;
  OrderedWorkers& operator=(const OrderedWorkers&) = delete;

  /// Waits until `item` is done, and rethrows what the first failing item up to it threw. After a
  /// failure no further items are begun. True when it had to wait.
  bool wait(uint64_t item);
  /// Whether wait(item) would return at once, without an Error.
  bool is_ready(uint64_t item);
  /// The consumer is through with all items below this one.
  void release_below(uint64_t item);

 private:
  void run(int worker);
  void finish(uint64_t item, std::exception_ptr error);

  const Job job_;
  std::mutex mutex_;
  std::condition_variable room_, done_;
  std::vector<char> is_done_;  // of item i at i % window
  uint64_t next_ = 0, released_ = 0, awaited_ = UINT64_MAX;
  bool is_stopping_ = false;
  std::exception_ptr error_;
  uint64_t error_item_ = UINT64_MAX;
  std::vector<std::thread> threads_;
};

}  // namespace crema
