// Kernels: blocks one after the other, the threads of a block as a plain loop on one fiber until
// one waits for others; then the next threads go on on a further fiber. Forwards or backwards,
// changing from block to block, so that an order that nothing promises shows.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "base/philox.h"
#include "cuda_runtime.h"
#include "cuda_sim/fiber.h"
#include "cuda_sim/sim.h"

namespace crema::cuda_sim {

Place running_place;

namespace {

constexpr unsigned kMostThreads = 1024, kStaticShared = 48u << 10, kMostShared = 227u << 10;

struct Thread {
  enum class State : uint8_t { fresh, running, waiting, done };
  State state = State::fresh;
  Gathering kind{};
  unsigned mask = 0;
  int line = 0;
  uint64_t value = 0;
  std::array<uint64_t, 32> seen{};
  Fiber* fiber = nullptr;
};

/// The block that is being played.
struct Block {
  const std::function<void()>* body = nullptr;
  unsigned threads = 0, started = 0, ended = 0;
  bool backwards = false, broken = false;
  unsigned running = 0;
  std::vector<Thread> all{kMostThreads};
  std::vector<std::unique_ptr<Fiber>> fibers;
  size_t fibers_used = 0;
  std::vector<float4> shared;
  std::string name;
};

Block& block() {
  static auto* const the = new Block;
  return *the;
}

std::map<const void*, int>& shared_limits() {
  static auto* const the = new std::map<const void*, int>;
  return *the;
}

void stand_at(unsigned thread) {
  const dim3 size = running_place.block_size;
  running_place.thread = {thread % size.x, thread / size.x % size.y, thread / (size.x * size.y)};
  block().running = thread;
}

/// On a fiber: threads that have not begun, until none is left.
void run_fresh_threads() {
  Block& b = block();
  Fiber* const own = b.fibers[b.fibers_used - 1].get();
  while (b.started < b.threads && !b.broken) {
    const unsigned thread = b.backwards ? b.threads - 1 - b.started : b.started;
    ++b.started;
    b.all[thread].state = Thread::State::running;
    b.all[thread].fiber = own;
    stand_at(thread);
    (*b.body)();
    b.all[thread].state = Thread::State::done;
    ++b.ended;
  }
}

void start_fiber() {
  Block& b = block();
  if (b.fibers_used == b.fibers.size()) b.fibers.push_back(std::make_unique<Fiber>());
  b.fibers[b.fibers_used++]->start(run_fresh_threads);
}

void go_on(unsigned thread) {
  block().all[thread].state = Thread::State::running;
  stand_at(thread);
  block().all[thread].fiber->resume();
}

void give_up(const std::string& why) {
  block().broken = true;
  violation(block().name + ": " + why);
}

std::string where(const Thread& thread) {
  const char* what = thread.kind == Gathering::block     ? "__syncthreads"
                     : thread.kind == Gathering::warp    ? "__syncwarp"
                     : thread.kind == Gathering::shuffle ? "a shuffle"
                                                         : "a ballot";
  return std::string(what) + " (line " + std::to_string(thread.line) + ")";
}

/// Releases the lanes that wait for each other where all of them have come.
bool release_warp(unsigned first) {
  Block& b = block();
  bool any = false;
  for (unsigned lane = 0; lane < 32 && first + lane < b.threads; ++lane) {
    Thread& leader = b.all[first + lane];
    if (leader.state != Thread::State::waiting || leader.kind == Gathering::block) continue;
    bool complete = true;
    std::array<uint64_t, 32> values{};
    for (unsigned i = 0; i < 32 && complete; ++i) {
      if ((leader.mask >> i & 1u) == 0) continue;
      complete = first + i < b.threads;
      if (!complete) break;
      const Thread& other = b.all[first + i];
      complete = other.state == Thread::State::waiting && other.kind == leader.kind &&
                 other.mask == leader.mask && other.line == leader.line;
      values[i] = other.value;
    }
    if (!complete) continue;
    const unsigned mask = leader.mask;
    for (unsigned i = 0; i < 32; ++i) {
      if ((mask >> i & 1u) != 0) b.all[first + i].seen = values;
    }
    for (unsigned i = 0; i < 32; ++i) {
      const unsigned turn = b.backwards ? 31 - i : i;
      if ((mask >> turn & 1u) != 0 && !b.broken) go_on(first + turn);
    }
    any = true;
  }
  return any;
}

bool release_block() {
  Block& b = block();
  for (unsigned i = 0; i < b.threads; ++i) {
    const Thread& thread = b.all[i];
    if (thread.state != Thread::State::waiting || thread.kind != Gathering::block ||
        thread.line != b.all[0].line) {
      return false;
    }
  }
  for (unsigned i = 0; i < b.threads && !b.broken; ++i) go_on(b.backwards ? b.threads - 1 - i : i);
  return true;
}

void explain_standstill() {
  const Block& b = block();
  const Thread* waiting = nullptr;
  const Thread* elsewhere = nullptr;
  for (unsigned i = 0; i < b.threads; ++i) {
    const Thread& thread = b.all[i];
    if (thread.state != Thread::State::waiting) continue;
    if (waiting == nullptr) {
      waiting = &thread;
    } else if (thread.kind != waiting->kind || thread.line != waiting->line) {
      elsewhere = &thread;
    }
  }
  give_up("threads of a block wait for each other at " + where(*waiting) +
          (elsewhere != nullptr ? " and at " + where(*elsewhere)
                                : ", and others have ended or are not in the mask"));
}

void play_block() {
  Block& b = block();
  b.started = b.ended = 0;
  b.fibers_used = 0;
  b.broken = false;
  for (unsigned i = 0; i < b.threads; ++i) b.all[i].state = Thread::State::fresh;
  if (!b.shared.empty()) poison(b.shared.data(), b.shared.size() * sizeof(float4));
  while (b.started < b.threads && !b.broken) start_fiber();
  while (b.ended < b.threads && !b.broken) {
    bool any = false;
    for (unsigned first = 0; first < b.threads && !b.broken; first += 32) {
      while (release_warp(first) && !b.broken) any = true;
    }
    if (!any && !b.broken && !release_block()) explain_standstill();
  }
}

struct Launch {
  dim3 grid, size;
  size_t shared = 0;
  std::function<void()> body;
  std::vector<ArgumentWord> words;
  std::string name;
  int card = 0;
};

void check_word(const ArgumentWord& word, const Launch& launch) {
  if (word.value == 0) return;
  const Found found = find(reinterpret_cast<const void*>(word.value));
  const std::string what = launch.name + ": argument " + std::to_string(word.argument) +
                           (word.is_pointer ? "" : ", byte " + std::to_string(word.offset));
  if (found.where == Where::freed) violation(what + " points into freed memory");
  if (found.where == Where::outside) violation(what + " points outside every allocation");
  if (found.where == Where::device && found.card != launch.card) {
    violation(what + " points to memory of another card");
  }
  if (found.where != Where::host) return;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const bool host = word.is_pointer;  // a shadow is mapped where numbers may seem to point
#else
  const bool in_reach = word.value >= (uintptr_t{1} << 32) && word.value < (uintptr_t{1} << 47);
  const bool host = word.is_pointer || (in_reach && is_mapped(word.value));
#endif
  if (host) violation(what + " is a host address");
}

void play_launch(const Launch& launch) {
  static uint64_t launches = 0;
  for (const ArgumentWord& word : launch.words) {
    check_word(word, launch);
    if (device_state() != cudaSuccess) return;
  }
  Block& b = block();
  b.body = &launch.body;
  b.name = launch.name;
  b.threads = launch.size.x * launch.size.y * launch.size.z;
  b.shared.resize((launch.shared + sizeof(float4) - 1) / sizeof(float4));
  running_place.block_size = launch.size;
  running_place.grid_size = launch.grid;
  const uint64_t blocks = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const uint32_t chance = philox(launches++, 0).v[0];
  for (uint64_t i = 0; i < blocks && !b.broken; ++i) {
    const uint64_t chosen = (chance & 1u) != 0 ? blocks - 1 - i : i;
    const uint64_t x = launch.grid.x, y = launch.grid.y;
    running_place.block = {static_cast<unsigned>(chosen % x), static_cast<unsigned>(chosen / x % y),
                           static_cast<unsigned>(chosen / (x * y))};
    b.backwards = ((chance >> (1 + i % 31)) & 1u) != 0;
    play_block();
  }
  b.broken = false;
}

std::string name_of(const void* kernel) {
  Dl_info info{};
  if (kernel == nullptr || dladdr(kernel, &info) == 0) return "a kernel";
  char text[160];
  const auto offset = static_cast<size_t>(static_cast<const char*>(kernel) -
                                          static_cast<const char*>(info.dli_fbase));
  std::snprintf(text, sizeof(text), "kernel %s+0x%zx",
                info.dli_sname != nullptr ? info.dli_sname : info.dli_fname,
                info.dli_sname != nullptr ? 0 : offset);
  return text;
}

bool block_fits(dim3 block) {
  return block.x >= 1 && block.y >= 1 && block.z >= 1 && block.x <= 1024 && block.y <= 1024 &&
         block.z <= 64 && uint64_t{block.x} * block.y * block.z <= kMostThreads;
}

bool grid_fits(dim3 grid) {
  return grid.x >= 1 && grid.y >= 1 && grid.z >= 1 && grid.x <= 0x7fffffffu && grid.y <= 65535 &&
         grid.z <= 65535;
}

}  // namespace

void* dynamic_shared_memory() { return block().shared.data(); }

/// Stands still until the scheduler resumes this thread.
static void wait(Gathering kind, unsigned mask, uint64_t value, int line) {
  Block& b = block();
  Thread& own = b.all[b.running];
  own.state = Thread::State::waiting;
  own.kind = kind;
  own.mask = mask;
  own.value = value;
  own.line = line;
  Fiber::pause();
}

void sync_block(int line) { wait(Gathering::block, 0, 0, line); }

const uint64_t* exchange(Gathering kind, unsigned mask, uint64_t value, int line) {
  const unsigned own = block().running;
  if ((mask >> (own % 32) & 1u) == 0) {
    give_up("a lane is not in the mask of the operation that it calls (line " +
            std::to_string(line) + ")");
    Fiber::pause();
  }
  wait(kind, mask, value, line);
  return block().all[own].seen.data();
}

cudaError_t launch_checked(dim3 grid, dim3 size, size_t shared, cudaStream_t handle,
                           std::function<void()> body, std::vector<ArgumentWord> words,
                           const void* kernel) {
  const std::lock_guard<std::recursive_mutex> lock(big_lock());
  const StreamRef stream = stream_of(handle);
  if (stream == nullptr) return result(cudaErrorInvalidResourceHandle);
  if (!block_fits(size) || !grid_fits(grid)) return result(cudaErrorInvalidConfiguration);
  const auto limit = shared_limits().find(kernel);
  const size_t most =
      limit == shared_limits().end() ? kStaticShared : static_cast<size_t>(limit->second);
  if (shared > std::max<size_t>(most, kStaticShared)) return result(cudaErrorInvalidValue);
  if (stream->card != current_card()) return result(cudaErrorInvalidResourceHandle);
  const auto launch = std::make_shared<Launch>(
      Launch{grid, size, shared, std::move(body), std::move(words), name_of(kernel), stream->card});
  return result(enqueue(stream, {.name = launch->name, .run = [launch] { play_launch(*launch); }}));
}

cudaError_t launch_kernel(dim3 grid, dim3 size, size_t shared, cudaStream_t stream,
                          std::function<void()> body) {
  return launch_checked(grid, size, shared, stream, std::move(body), {}, nullptr);
}

}  // namespace crema::cuda_sim

using namespace crema::cuda_sim;

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const std::lock_guard<std::recursive_mutex> lock(big_lock());
  if (kernel == nullptr) return result(cudaErrorInvalidDeviceFunction);
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      value > static_cast<int>(kMostShared)) {
    return result(cudaErrorInvalidValue);
  }
  shared_limits()[kernel] = value;
  return cudaSuccess;
}
