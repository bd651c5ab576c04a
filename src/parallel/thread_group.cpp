// The last thread that comes to a meeting opens it for all.
#include "parallel/thread_group.h"

namespace crema {

void ThreadGroup::meet() {
  std::unique_lock lock(mutex_);
  wait(lock);
}

const std::vector<void*>& ThreadGroup::exchange(int rank, void* own) {
  std::unique_lock lock(mutex_);
  given_[static_cast<size_t>(rank)] = own;
  wait(lock);
  return everything_;
}

void ThreadGroup::wait(std::unique_lock<std::mutex>& lock) {
  const uint64_t meeting = meetings_;
  if (!is_broken_ && ++here_ == given_.size()) {
    here_ = 0;
    ++meetings_;
    everything_ = given_;
    all_here_.notify_all();
  }
  all_here_.wait(lock, [&] { return is_broken_ || meetings_ != meeting; });
  if (meetings_ == meeting) throw GroupBroken(reason_);
}

void ThreadGroup::give_up(const std::string& reason) noexcept {
  std::vector<std::function<void()>> actions;
  {
    const std::lock_guard lock(mutex_);
    if (!is_broken_) reason_ = reason;
    is_broken_ = true;
    actions.swap(actions_);
    all_here_.notify_all();
  }
  for (const std::function<void()>& action : actions) action();
}

void ThreadGroup::when_broken(std::function<void()> action) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_broken_) {
      actions_.push_back(std::move(action));
      return;
    }
  }
  action();
}

}  // namespace crema
