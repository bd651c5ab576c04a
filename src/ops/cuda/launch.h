// The one place that starts kernels, so that the same sources compile for a CPU (CREMA_CUDA_SIM),
// where a launcher plays blocks and threads.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "ops/cuda/cuda_api.h"

namespace crema::cuda {

/// Enqueues kernel(args...) on stream. Throws Error where the launch is refused. A grid without
/// blocks is no launch.
template <class... Params, class... Args>
void launch(void (*kernel)(Params...), dim3 grid, dim3 block, size_t dynamic_shared_bytes,
            cudaStream_t stream, const Args&... args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
#if defined(CREMA_CUDA_SIM)
  check(cuda_sim::launch_kernel(kernel, grid, block, dynamic_shared_bytes, stream, args...),
        "a kernel launch");
#else
  kernel<<<grid, block, dynamic_shared_bytes, stream>>>(static_cast<Params>(args)...);
  check(cudaGetLastError(), "a kernel launch");
#endif
}

/// The running block's dynamic shared memory, as large as launch() was told.
template <class T>
__device__ T* dynamic_shared() {
#if defined(CREMA_CUDA_SIM)
  return static_cast<T*>(cuda_sim::dynamic_shared_memory());
#else
  extern __shared__ float4 crema_dynamic_shared[];
  return reinterpret_cast<T*>(crema_dynamic_shared);
#endif
}

/// Blocks of `block` threads that cover n elements, at most enough to fill any card several times:
/// kernels stride over the rest.
inline unsigned blocks_for(int64_t n, int block) {
  constexpr int64_t kMost = 132 * 16;
  const int64_t wanted = (n + block - 1) / block;
  return static_cast<unsigned>(wanted < kMost ? wanted : kMost);
}

}  // namespace crema::cuda
