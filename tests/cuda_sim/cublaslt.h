// cuBLASLt's descriptors as the stand-in keeps them, inside the library's opaque structs.
#pragma once

#include <cublasLt.h>

#include "cuda_sim/numbers.h"

namespace crema::cuda_sim {

struct LtLayout {
  static constexpr uint64_t kMagic = 0x4c61796f7574a11eu;
  uint64_t magic = kMagic;
  cudaDataType type = CUDA_R_32F;
  int32_t order = CUBLASLT_ORDER_COL;
  uint64_t rows = 0, cols = 0;
  int64_t ld = 0;
  int32_t batches = 1;
  int64_t batch_stride = 0;
};

struct LtMatmul {
  static constexpr uint64_t kMagic = 0x4d61746d756c5eedu;
  uint64_t magic = kMagic;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  int32_t scale_type = CUDA_R_32F, pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  int32_t trans_a = CUBLAS_OP_N, trans_b = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  int32_t bias_type = -1;
};

struct LtPreference {
  static constexpr uint64_t kMagic = 0x5072656665724eceu;
  uint64_t magic = kMagic;
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};  // of A, B, C and D
};

/// What the stand-in keeps in an algorithm: how much it needs of what.
struct LtAlgo {
  static constexpr uint64_t kMagic = 0x416c676f726974a5u;
  uint64_t magic = kMagic;
  uint64_t workspace = 0, alignment = 16;
};

/// The inside of an opaque struct, or null where it is of another kind.
template <class Inside, class Opaque>
Inside* inside(Opaque* opaque) {
  static_assert(sizeof(Inside) <= sizeof(Opaque));
  auto* found = reinterpret_cast<Inside*>(opaque);
  return found != nullptr && found->magic == Inside::kMagic ? found : nullptr;
}

struct LtProblem {
  LtMatmul op;
  LtLayout a, b, c, d;
};
/// CUBLAS_STATUS_SUCCESS, INVALID_VALUE where sizes do not fit each other, or NOT_SUPPORTED.
cublasStatus_t check_problem(const LtProblem& problem);
Number number_of(int cuda_type);
bool is_known(cublasLtHandle_t handle);

}  // namespace crema::cuda_sim
