// Fibers: stacks that are switched by hand, for the threads of a block that wait for each other.
#pragma once

#include <functional>
#include <memory>
#include <vector>

namespace crema::cuda_sim {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  /// From outside: starts body on the fiber's stack, or goes on where it paused; returns when it
  /// pauses or ends. A body that pauses forever may be replaced by start().
  void start(void (*body)());
  void resume();
  /// From inside: back to whoever resumed.
  static void pause();

 private:
  struct Stack;
  std::unique_ptr<Stack> stack_;
};

}  // namespace crema::cuda_sim
