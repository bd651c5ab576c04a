#include "base/error.h"
#include "ops/cpu/cpu_ops.h"
namespace crema {
std::unique_ptr<NormPlan> CpuOps::plan(const NormDesc&) { fail("norm"); }
std::unique_ptr<LrnPlan> CpuOps::plan(const LrnDesc&) { fail("lrn"); }
std::unique_ptr<SoftmaxPlan> CpuOps::plan(const SoftmaxDesc&) { fail("softmax"); }
}  // namespace crema
