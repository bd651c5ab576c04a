// Device memory: addresses from one range that nothing may touch but device code. Every allocation
// has pages of its own, so that a wild access faults, and red zones in what is left of them. No
// address is given twice.
#include "cuda_sim/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace crema::cuda_sim {
namespace {

constexpr size_t kRange = size_t{1} << 40, kHugePage = size_t{2} << 20;
constexpr size_t kAlignment = 256;  // what cudaMalloc promises
// A quiet NaN in f32, f16 and bf16, at any even offset.
constexpr uint32_t kPoison = 0xFFC7FFC7u;
constexpr uint8_t kRedZone = 0xFB;

struct Allocation {
  uint8_t* begin = nullptr;
  size_t bytes = 0;
  uint8_t* pages = nullptr;
  size_t page_bytes = 0;
  int card = 0;
  bool open = false, live = true;
};

struct Memory {
  uint8_t* range = nullptr;
  size_t page = 4096, next = 0;
  std::map<uintptr_t, Allocation> allocations;  // by first page
  std::map<uintptr_t, size_t> pinned;
  std::vector<Allocation*> open;
  size_t limit = size_t{4} << 30;
  size_t used[8] = {};
  struct sigaction former {};
};

// Read by the fault handler, behind the compiler's back.
thread_local volatile int device_depth = 0;

void on_fault(int number, siginfo_t* info, void* context);

Memory& memory() {
  static Memory* const the = [] {
    auto* m = new Memory;  // lives as long as the program: late fork()s and exits may still ask
    m->page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* range = mmap(nullptr, kRange + kHugePage, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) {
      std::fputs("cuda_sim: no address range for device memory\n", stderr);
      std::abort();
    }
    const auto begin = (reinterpret_cast<uintptr_t>(range) + kHugePage - 1) / kHugePage * kHugePage;
    m->range = reinterpret_cast<uint8_t*>(begin);
    if (const char* text = std::getenv("CREMA_SIM_MEMORY")) {
      m->limit = static_cast<size_t>(std::strtoull(text, nullptr, 10)) << 20;
    }
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &m->former);
    return m;
  }();
  return *the;
}

bool in_range(uintptr_t address) {
  const auto begin = reinterpret_cast<uintptr_t>(memory().range);
  return address >= begin && address < begin + kRange;
}

Allocation* allocation_at(uintptr_t address) {
  auto& all = memory().allocations;
  auto it = all.upper_bound(address);
  if (it == all.begin()) return nullptr;
  Allocation& a = (--it)->second;
  const auto pages = reinterpret_cast<uintptr_t>(a.pages);
  return address <= pages + a.page_bytes ? &a : nullptr;
}

void open(Allocation& a) {
  mprotect(a.pages, a.page_bytes, PROT_READ | PROT_WRITE);
  a.open = true;
  memory().open.push_back(&a);
}

/// A touch of closed memory: device code opens it, anything else ends here.
void on_fault(int number, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (in_range(address)) {
    Allocation* a = allocation_at(address);
    const bool inside =
        a != nullptr && address < reinterpret_cast<uintptr_t>(a->pages) + a->page_bytes;
    if (device_depth > 0 && inside && a->live && !a->open) return open(*a);
    std::fprintf(stderr, "cuda_sim: %s\n",
                 device_depth == 0          ? "device memory was touched by host code"
                 : a != nullptr && !a->live ? "a kernel touched freed memory"
                                            : "a kernel touched memory outside every allocation");
  }
  if (!in_range(address) && device_depth > 0) {
    std::fputs("cuda_sim: a kernel touched an address that is no device memory\n", stderr);
  }
  sigaction(SIGSEGV, &memory().former, nullptr);
  if (memory().former.sa_flags & SA_SIGINFO)
    return memory().former.sa_sigaction(number, info, context);
}

bool is_red(const uint8_t* begin, const uint8_t* end) {
  // Never destroyed: memory is freed, and looked at, at the end of the program too.
  static const auto* const red = new std::vector<uint8_t>(4096, kRedZone);
  for (; begin < end; begin += red->size()) {
    const size_t bytes = std::min(red->size(), static_cast<size_t>(end - begin));
    if (std::memcmp(begin, red->data(), bytes) != 0) return false;
  }
  return true;
}

bool red_zones_whole(const Allocation& a) {
  return is_red(a.pages, a.begin) && is_red(a.begin + a.bytes, a.pages + a.page_bytes);
}

void fill_red_zones(const Allocation& a) {
  std::memset(a.pages, kRedZone, static_cast<size_t>(a.begin - a.pages));
  uint8_t* const end = a.begin + a.bytes;
  std::memset(end, kRedZone, static_cast<size_t>(a.pages + a.page_bytes - end));
}

void check(const Allocation& a, const std::string& what) {
  if (red_zones_whole(a)) return;
  violation(what + " wrote outside an allocation of " + std::to_string(a.bytes) + " bytes");
  fill_red_zones(a);  // said once
}

bool holds_poison(const uint8_t* begin, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const size_t skip = (4 - address % 4) % 4;
  for (size_t i = skip; i + 4 <= bytes; i += 4) {
    uint32_t word = 0;
    std::memcpy(&word, begin + i, 4);
    if (word == kPoison) return true;
  }
  if (bytes >= 2 && bytes < 4 && address % 2 == 0) {
    uint16_t half = 0;
    std::memcpy(&half, begin, 2);
    return half == static_cast<uint16_t>(kPoison);
  }
  return false;
}

}  // namespace

bool is_mapped(uintptr_t address) {
  unsigned char state = 0;
  const uintptr_t page = address / memory().page * memory().page;
  return mincore(reinterpret_cast<void*>(page), memory().page, &state) == 0;
}

Found find(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const auto& pinned = memory().pinned;
  auto it = pinned.upper_bound(address);
  if (it != pinned.begin() && address < (--it)->first + it->second) {
    return {Where::pinned, 0, address - it->first, it->first + it->second - address};
  }
  if (!in_range(address)) return {};
  const Allocation* a = allocation_at(address);
  if (a == nullptr) return {.where = Where::outside};
  const auto begin = reinterpret_cast<uintptr_t>(a->begin);
  if (address < begin || address > begin + a->bytes) return {.where = Where::outside};
  return {a->live ? Where::device : Where::freed, a->card, address - begin,
          begin + a->bytes - address};
}

void poison(void* address, size_t bytes) {
  auto* begin = static_cast<uint8_t*>(address);
  const auto byte_at = [](const uint8_t* place) {
    return static_cast<uint8_t>(kPoison >> (8 * (reinterpret_cast<uintptr_t>(place) % 4)));
  };
  uint8_t* const end = begin + bytes;
  for (; begin < end && reinterpret_cast<uintptr_t>(begin) % 4 != 0; ++begin)
    *begin = byte_at(begin);
  auto* words = reinterpret_cast<uint32_t*>(begin);
  const size_t count = static_cast<size_t>(end - begin) / 4;
  std::fill(words, words + count, kPoison);
  for (begin += 4 * count; begin < end; ++begin) *begin = byte_at(begin);
}

void* allocate_device(size_t bytes, int card) {
  Memory& m = memory();
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes > m.limit || m.used[card] + rounded > m.limit) return nullptr;
  Allocation a;
  a.bytes = bytes;
  a.card = card;
  a.page_bytes = (rounded + kAlignment + m.page - 1) / m.page * m.page;
  const bool is_large = a.page_bytes >= 2 * kHugePage;
  const size_t first =
      is_large ? (m.next + m.page + kHugePage) / kHugePage * kHugePage : m.next + m.page;
  if (first + a.page_bytes + m.page > kRange) return nullptr;
  a.pages = m.range + first;
  m.next = first + a.page_bytes;
  if (is_large)
    madvise(a.pages, a.page_bytes, MADV_HUGEPAGE);  // page faults cost more than filling
  a.begin = a.pages + a.page_bytes - rounded;
  m.used[card] += rounded;
  const auto key = reinterpret_cast<uintptr_t>(a.pages);
  Allocation& kept = m.allocations.emplace(key, a).first->second;
  const DeviceCode code;
  fill_red_zones(kept);
  poison(kept.begin, bytes);
  return kept.begin;
}

bool free_device(void* address) {
  Memory& m = memory();
  Allocation* a = allocation_at(reinterpret_cast<uintptr_t>(address));
  if (a == nullptr || !a->live || a->begin != address) return false;
  {
    const DeviceCode code;
    check(*a, "work of unknown name");
  }
  a->live = false;
  m.used[a->card] -= (a->bytes + kAlignment - 1) / kAlignment * kAlignment;
  mmap(a->pages, a->page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
       -1, 0);
  return true;
}

void* allocate_pinned(size_t bytes) {
  void* address =
      std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (address == nullptr) return nullptr;
  poison(address, bytes);
  memory().pinned[reinterpret_cast<uintptr_t>(address)] = bytes;
  return address;
}

bool free_pinned(void* address) {
  if (memory().pinned.erase(reinterpret_cast<uintptr_t>(address)) == 0) return false;
  std::free(address);
  return true;
}

void set_card_memory(size_t bytes) { memory().limit = bytes; }
size_t card_memory() { return memory().limit; }
size_t card_memory_used(int card) { return memory().used[card]; }

DeviceCode::DeviceCode() {
  memory();
  device_depth = device_depth + 1;
  asm volatile("" ::: "memory");
}

DeviceCode::~DeviceCode() {
  asm volatile("" ::: "memory");
  device_depth = device_depth - 1;
  if (device_depth > 0) return;
  for (Allocation* a : memory().open) {
    a->open = false;
    if (a->live) mprotect(a->pages, a->page_bytes, PROT_NONE);
  }
  memory().open.clear();
}

void check_red_zones(const std::string& what) {
  for (const Allocation* a : memory().open) check(*a, what);
}

void check_all_red_zones(const std::string& what) {
  const DeviceCode code;
  for (const auto& [key, a] : memory().allocations) {
    if (a.live) check(a, what);
  }
}

bool overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return x < y + b_bytes && y < x + a_bytes;
}

bool check_range(const void* address, size_t bytes, Access access, int card,
                 const std::string& what) {
  if (bytes == 0) return true;
  const Found found = find(address);
  const char* wrong = found.where == Where::host      ? " is host memory"
                      : found.where == Where::freed   ? " was freed"
                      : found.where == Where::outside ? " belongs to no allocation"
                      : found.where == Where::device && found.card != card ? " lies on another card"
                                                                           : nullptr;
  if (wrong != nullptr) {
    violation(what + wrong);
    return false;
  }
  if (bytes > found.after) {
    violation(what + " reaches " + std::to_string(bytes - found.after) +
              " bytes beyond the end of its allocation");
    return false;
  }
  const DeviceCode code;
  if (access == Access::read && holds_poison(static_cast<const uint8_t*>(address), bytes)) {
    violation(what + " holds memory that was never written");
    return false;
  }
  return true;
}

}  // namespace crema::cuda_sim
