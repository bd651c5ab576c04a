// The functions of malloc stand in front of the C library's for the whole program. They put down
// addresses only; names are looked up afterwards.
#include "solver/allocations.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>

#include "base/str.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CREMA_COUNTS_ALLOCATIONS
namespace {

constexpr int kOwnFrames = 2;  // note() and the function of malloc

struct Noted {
  std::array<void*, 32> frames;
  int depth;
  size_t bytes;
};
std::atomic<bool> is_counting{false};
std::atomic<int> noted_count{0}, writers{0};
std::array<Noted, 256> noted;

/// Never inlined, so that the caller's caller is always the same number of frames away.
__attribute__((noinline)) void note(size_t bytes) {
  thread_local bool is_inside = false;
  if (!is_counting || is_inside) return;
  is_inside = true;
  ++writers;
  const int place = is_counting ? noted_count++ : static_cast<int>(noted.size());
  if (place < static_cast<int>(noted.size())) {
    Noted& one = noted[static_cast<size_t>(place)];
    one.depth = backtrace(one.frames.data(), static_cast<int>(one.frames.size()));
    one.bytes = bytes;
  }
  --writers;
  is_inside = false;
}

}  // namespace

extern "C" {
void* __libc_malloc(size_t bytes);                      // NOLINT
void* __libc_calloc(size_t count, size_t bytes);        // NOLINT
void* __libc_realloc(void* memory, size_t bytes);       // NOLINT
void* __libc_memalign(size_t alignment, size_t bytes);  // NOLINT

void* malloc(size_t bytes) {
  note(bytes);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  note(count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  note(bytes);
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  note(bytes);
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}
}
#endif

namespace crema {

#ifdef CREMA_COUNTS_ALLOCATIONS
namespace {

struct Caller {
  std::string file;
  ptrdiff_t offset = 0;
};

Caller caller_at(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || !info.dli_fname) return {"nowhere", 0};
  return {info.dli_fname,
          static_cast<const char*>(address) - static_cast<const char*>(info.dli_fbase)};
}

bool is_plain_library(const std::string& file) {
  return file.find("/libc.so") != std::string::npos || file.find("/libstdc++") != std::string::npos;
}

/// Of the system's libraries; ours lie in the build folder.
bool is_system_file(const std::string& file) {
  return file.rfind("/lib/", 0) == 0 || file.rfind("/usr/lib/", 0) == 0 ||
         file.rfind("/usr/local/lib/", 0) == 0;
}

Allocation describe(const Noted& one) {
  Allocation out{.bytes = one.bytes, .is_ours = true, .owner = {}, .stack = {}};
  for (int i = kOwnFrames; i < one.depth; ++i) {
    const Caller caller = caller_at(one.frames[static_cast<size_t>(i)]);
    out.stack += str("\n  ", caller.file, " +0x", std::hex, caller.offset);
    if (out.owner.empty() && !is_plain_library(caller.file)) out.owner = caller.file;
  }
  out.is_ours = !is_system_file(out.owner);
  return out;
}

}  // namespace

bool counts_allocations() { return true; }

std::vector<Allocation> allocations_of(const std::function<void()>& call) {
  std::array<void*, 4> warm{};
  backtrace(warm.data(), static_cast<int>(warm.size()));  // loads what it needs
  noted_count = 0;
  is_counting = true;
  call();
  is_counting = false;
  while (writers > 0) {  // other threads may be putting one down
  }
  std::vector<Allocation> all;
  const int count = std::min(noted_count.load(), static_cast<int>(noted.size()));
  for (int i = 0; i < count; ++i) all.push_back(describe(noted[static_cast<size_t>(i)]));
  return all;
}
#else
bool counts_allocations() { return false; }

std::vector<Allocation> allocations_of(const std::function<void()>& call) {
  call();
  return {};
}
#endif

}  // namespace crema
