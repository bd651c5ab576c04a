// Matrix products of any orientation.
#include <cassert>

#include "base/error.h"
#include "ops/cpu/cpu_ops.h"

namespace crema {

void CpuOps::gemm(bool ta, bool tb, float alpha, CTensor a, CTensor b, Tensor c, Write how) {
  const int64_t m = c.shape()[0], n = c.shape()[1], k = ta ? a.shape()[0] : a.shape()[1];
  assert(m == (ta ? a.shape()[1] : a.shape()[0]) && n == (tb ? b.shape()[0] : b.shape()[1]));
  const float beta = how == Write::accumulate ? 1.0f : 0.0f;
  const auto status = dnnl::sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, alpha, a.f32(),
                                  a.shape()[1], b.f32(), b.shape()[1], beta, c.f32(), n);
  require(status == dnnl::status::success, "matrix product ", m, " x ", n, " x ", k, " failed");
}

}  // namespace crema
