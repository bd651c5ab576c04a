// What the CPU backend owns: memory, the step scalars, the fault slot, its table of kernels.
#include "ops/cpu/cpu_ops.h"

#include <sys/mman.h>

#include <cstdlib>

#include "base/error.h"
#include "ops/cpu/make_cpu_ops.h"
#include "ops/cpu/parallel.h"

namespace crema {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

/// Writes zeros with all threads, so that each page is first touched here and once.
void clear(char* memory, size_t bytes) {
  const auto n = static_cast<int64_t>(bytes);
  parallel_ranges(n, n / 4, static_cast<int64_t>(kHugePage), [=](int64_t begin, int64_t end) {
    std::memset(memory + begin, 0, static_cast<size_t>(end - begin));
  });
}

}  // namespace

std::shared_ptr<Ops> make_cpu_ops() { return std::make_shared<CpuOps>(); }

CpuOps::CpuOps(const Isa& isa) : isa_(isa), gemm_(isa) {
  for (int i = 0; i < isa.kernel_count; ++i) kernels_.emplace(isa.kernels[i].name, &isa.kernels[i]);
}

std::string CpuOps::describe() const {
  const int threads = omp_get_max_threads();
  return str("CPU (", threads, threads == 1 ? " thread, " : " threads, ", isa_.name, ")");
}

void CpuOps::upload(const void* host, Tensor dst) { std::memcpy(dst.data, host, dst.desc.bytes()); }

void CpuOps::download(CTensor src, void* host) { std::memcpy(host, src.data, src.desc.bytes()); }

Buffer CpuOps::allocate(size_t bytes, Memory) {
  const bool is_large = bytes >= 2 * kHugePage;
  const size_t alignment = is_large ? kHugePage : 64;
  const size_t size = std::max<size_t>((bytes + alignment - 1) / alignment * alignment, alignment);
  void* memory = std::aligned_alloc(alignment, size);
  require(memory != nullptr, "out of memory: ", size >> 20, " MiB were wanted");
  if (is_large) madvise(memory, size, MADV_HUGEPAGE);
  clear(static_cast<char*>(memory), size);
  return {memory, std::free};
}

std::optional<Fault> CpuOps::take_fault() {
  if (!fault_.set) return std::nullopt;
  const Fault taken = fault_;
  fault_ = {};
  return taken;
}

}  // namespace crema
