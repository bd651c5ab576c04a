// What the CPU backend owns: memory, the step scalars, the fault slot, its table of kernels.
#include "ops/cpu/cpu_ops.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.h"
#include "base/trace.h"
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

/// Whether the processor multiplies bf16 numbers (AVX512-BF16 or AMX-BF16).
bool has_bf16() {
#ifdef __x86_64__
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kAvx512Bf16 = 1u << 5, kAmxBf16 = 1u << 22;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kAmxBf16) != 0) return true;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & kAvx512Bf16) != 0;
#else
  return false;
#endif
}

}  // namespace

std::shared_ptr<Ops> make_cpu_ops() { return std::make_shared<CpuOps>(); }

CpuOps::CpuOps(const Isa& isa) : isa_(isa), gemm_(isa) {
  Trace::set_device_workers(omp_get_max_threads() - 1);
  for (int i = 0; i < isa.kernel_count; ++i) kernels_.emplace(isa.kernels[i].name, &isa.kernels[i]);
}

std::string CpuOps::describe() const {
  const int threads = omp_get_max_threads();
  return str("CPU (", threads, threads == 1 ? " thread, " : " threads, ", isa_.name, ")");
}

std::optional<std::string> CpuOps::why_not_precision(DType type) const {
  if (type == DType::f32) return std::nullopt;
  if (type == DType::bf16 && !has_bf16()) {
    return "this processor has neither AVX512-BF16 nor AMX, which it takes; f32 is there";
  }
  if (type == DType::bf16) return std::nullopt;
  return "a CPU has f32 and bf16 only";
}

bool CpuOps::computes(Family, DType type) const {
  return type == DType::f32 || type == DType::bf16;
}

size_t CpuOps::capacity() const {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(page) : 0;
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
