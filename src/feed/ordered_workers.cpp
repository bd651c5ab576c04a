// One lock guards all counters; it is taken twice for each item, so callers make items of some
// microseconds or more.
#include "feed/ordered_workers.h"

#include <algorithm>

#include "base/str.h"
#include "base/trace.h"

namespace crema {

int hardware_threads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

OrderedWorkers::OrderedWorkers(Job job) : job_(std::move(job)), is_done_(job_.window, 0) {
  try {
    for (int i = 0; i < job_.threads; ++i) threads_.emplace_back([this, i] { run(i); });
  } catch (...) {
    // A machine that gives fewer threads than asked for is still able to work with one.
    if (threads_.empty()) throw;
  }
}

OrderedWorkers::~OrderedWorkers() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void OrderedWorkers::run(int worker) {
  Trace::name_thread(str(job_.name, " ", worker + 1));
  std::unique_lock lock(mutex_);
  for (;;) {
    room_.wait(lock, [&] {
      return is_stopping_ || error_ || next_ >= job_.end || next_ < released_ + job_.window;
    });
    if (is_stopping_ || error_ || next_ >= job_.end) return;
    const uint64_t item = next_++;
    is_done_[item % job_.window] = 0;
    std::exception_ptr error;
    try {
      if (job_.draw) job_.draw(item);
      lock.unlock();
      job_.work(item, worker);
    } catch (...) {
      error = std::current_exception();
    }
    if (!lock.owns_lock()) lock.lock();
    finish(item, error);
  }
}

void OrderedWorkers::finish(uint64_t item, std::exception_ptr error) {
  is_done_[item % job_.window] = 1;
  if (error && item < error_item_) {
    error_ = error;
    error_item_ = item;
    room_.notify_all();
  }
  if (item == awaited_ || error) done_.notify_one();
}

bool OrderedWorkers::wait(uint64_t item) {
  std::unique_lock lock(mutex_);
  const auto is_ready = [&] {
    return error_item_ <= item || (item < next_ && is_done_[item % job_.window]);
  };
  const bool must_wait = !is_ready();
  awaited_ = item;
  done_.wait(lock, is_ready);
  awaited_ = UINT64_MAX;
  if (error_item_ <= item) std::rethrow_exception(error_);
  return must_wait;
}

bool OrderedWorkers::is_ready(uint64_t item) {
  const std::lock_guard lock(mutex_);
  return item < error_item_ && item < next_ && is_done_[item % job_.window];
}

void OrderedWorkers::release_below(uint64_t item) {
  {
    std::lock_guard lock(mutex_);
    released_ = item;
  }
  room_.notify_all();
}

}  // namespace crema
