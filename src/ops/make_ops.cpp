// The only place that names a backend.
#include "base/error.h"
#include "ops/cpu/make_cpu_ops.h"
#include "ops/ops.h"

namespace crema {

std::shared_ptr<Ops> make_ops(const Device& device) {
  require(!device.gpu, "this build has no CUDA support: use --cpu, or leave out --gpu ",
          device.index, " and solver_mode: GPU");
  return make_cpu_ops();
}

bool gpu_present() { return false; }

}  // namespace crema
