// A bounded queue between threads. close() ends both sides: push returns false, pop drains what is
// left, then nothing.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

namespace crema {

template <class T>
class Queue {
 public:
  explicit Queue(size_t capacity) : capacity_(capacity) {}

  /// Waits for room. False when the queue was closed: the item is dropped.
  bool push(T item) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return items_.size() < capacity_ || closed_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    filled_.notify_one();
    return true;
  }
  /// Waits for an item. Nothing when the queue is closed and drained.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return !items_.empty() || closed_; });
    if (items_.empty()) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    room_.notify_one();
    return item;
  }
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    filled_.notify_all();
    room_.notify_all();
  }
  bool is_empty() const {
    std::lock_guard lock(mutex_);
    return items_.empty();
  }

 private:
  size_t capacity_;
  bool closed_ = false;
  std::deque<T> items_;
  mutable std::mutex mutex_;
  std::condition_variable filled_, room_;
};

}  // namespace crema
