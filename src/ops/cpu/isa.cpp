// The choice of an instruction set's table.
#include "ops/cpu/isa/isa.h"

#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace crema {

const Isa* isa_named(const char* name) {
  if (!std::strcmp(name, "baseline")) return &isa_baseline::kIsa;
#if defined(CREMA_HAS_X86_ISAS)
  if (!std::strcmp(name, "avx2")) {
    const bool runs = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("f16c");
    return runs ? &isa_avx2::kIsa : nullptr;
  }
  if (!std::strcmp(name, "avx512")) {
    const bool runs = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("fma");
    return runs ? &isa_avx512::kIsa : nullptr;
  }
#endif
  return nullptr;
}

const Isa& best_isa() {
  if (const char* wanted = std::getenv("CREMA_ISA")) {
    const Isa* isa = isa_named(wanted);
    require(isa != nullptr, "CREMA_ISA: this processor and this build have no ", wanted,
            "; baseline, avx2 and avx512 are known");
    return *isa;
  }
  for (const char* name : {"avx512", "avx2"}) {
    if (const Isa* isa = isa_named(name)) return *isa;
  }
  return isa_baseline::kIsa;
}

}  // namespace crema
