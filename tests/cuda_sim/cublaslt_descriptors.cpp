// cuBLASLt without arithmetic: handles, descriptors, and which algorithms a problem has.
#include <cstring>
#include <set>

#include "cuda_sim/cublaslt.h"
#include "cuda_sim/sim.h"

struct cublasLtContext {
  int card = 0;
};

namespace crema::cuda_sim {
namespace {

std::set<cublasLtHandle_t>& known_handles() {
  static auto* const the = new std::set<cublasLtHandle_t>;
  return *the;
}

template <class Inside, class Opaque>
cublasStatus_t create(Opaque** out, const Inside& content) {
  if (out == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *out = new Opaque{};
  std::memcpy(*out, &content, sizeof(content));
  return CUBLAS_STATUS_SUCCESS;
}

template <class Inside, class Opaque>
cublasStatus_t destroy(Opaque* opaque) {
  if (opaque == nullptr) return CUBLAS_STATUS_SUCCESS;
  if (inside<Inside>(opaque) == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  std::memset(opaque, 0, sizeof(*opaque));
  delete opaque;
  return CUBLAS_STATUS_SUCCESS;
}

/// Sets a field from a buffer of just its size.
template <class T>
cublasStatus_t assign(T& field, const void* buffer, size_t bytes) {
  if (buffer == nullptr || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, buffer, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}

bool epilogue_is_known(uint32_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_DEFAULT || epilogue == CUBLASLT_EPILOGUE_RELU ||
         epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ||
         epilogue == CUBLASLT_EPILOGUE_BGRADA || epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

bool layout_is_sound(const LtLayout& layout) {
  const uint64_t shortest = layout.order == CUBLASLT_ORDER_COL ? layout.rows : layout.cols;
  return layout.rows > 0 && layout.cols > 0 && layout.ld >= static_cast<int64_t>(shortest) &&
         layout.batches >= 1;
}

bool types_are_supported(const LtProblem& p) {
  const Number in = number_of(p.a.type), out = number_of(p.d.type);
  if (in == Number::none || out == Number::none) return false;
  if (p.b.type != p.a.type || p.c.type != p.d.type) return false;
  if (in == Number::f32 && out != Number::f32) return false;
  if (in != Number::f32 && out != Number::f32 && in != out) return false;
  if (p.op.scale_type != CUDA_R_32F) return false;
  if (p.op.compute == CUBLAS_COMPUTE_32F || p.op.compute == CUBLAS_COMPUTE_32F_PEDANTIC)
    return true;
  return p.op.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && in == Number::f32;
}

}  // namespace

bool is_known(cublasLtHandle_t handle) { return known_handles().count(handle) != 0; }

Number number_of(int cuda_type) {
  return cuda_type == CUDA_R_32F    ? Number::f32
         : cuda_type == CUDA_R_16F  ? Number::f16
         : cuda_type == CUDA_R_16BF ? Number::bf16
                                    : Number::none;
}

cublasStatus_t check_problem(const LtProblem& p) {
  for (const LtLayout* layout : {&p.a, &p.b, &p.c, &p.d}) {
    if (!layout_is_sound(*layout) || layout->batches != p.d.batches) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (layout->order != CUBLASLT_ORDER_COL && layout->order != CUBLASLT_ORDER_ROW) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  }
  const bool ta = p.op.trans_a == CUBLAS_OP_T, tb = p.op.trans_b == CUBLAS_OP_T;
  const uint64_t m = ta ? p.a.cols : p.a.rows, k = ta ? p.a.rows : p.a.cols;
  const uint64_t k_of_b = tb ? p.b.cols : p.b.rows, n = tb ? p.b.rows : p.b.cols;
  const bool fits = k == k_of_b && p.d.rows == m && p.d.cols == n && p.c.rows == m && p.c.cols == n;
  if (!fits || p.c.order != p.d.order) return CUBLAS_STATUS_INVALID_VALUE;
  if (!types_are_supported(p) || !epilogue_is_known(p.op.epilogue)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const bool plain =
      p.op.epilogue == CUBLASLT_EPILOGUE_DEFAULT || p.op.epilogue == CUBLASLT_EPILOGUE_RELU;
  if (!plain && p.d.order != CUBLASLT_ORDER_COL) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!plain && p.d.batches != 1) return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace crema::cuda_sim

using namespace crema::cuda_sim;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  const std::lock_guard<std::recursive_mutex> lock(big_lock());
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (forbid_in_capture() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  *handle = new cublasLtContext{current_card()};
  known_handles().insert(*handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  const std::lock_guard<std::recursive_mutex> lock(big_lock());
  if (known_handles().erase(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "no such handle";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "a value is not allowed";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "not supported";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "execution failed";
    default:
      return "another status";
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale_type) {
  LtMatmul content;
  content.compute = compute;
  content.scale_type = scale_type;
  return create(desc, content);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  return destroy<LtMatmul>(desc);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* buffer, size_t bytes) {
  LtMatmul* op = inside<LtMatmul>(desc);
  if (op == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return assign(op->trans_a, buffer, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return assign(op->trans_b, buffer, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return assign(op->epilogue, buffer, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return assign(op->bias, buffer, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return assign(op->bias_type, buffer, bytes);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      return assign(op->pointer_mode, buffer, bytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld) {
  LtLayout content;
  content.type = type;
  content.rows = rows;
  content.cols = cols;
  content.ld = ld;
  return create(layout, content);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy<LtLayout>(layout);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t opaque,
                                                cublasLtMatrixLayoutAttribute_t name,
                                                const void* buffer, size_t bytes) {
  LtLayout* layout = inside<LtLayout>(opaque);
  if (layout == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (name) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
      return assign(layout->type, buffer, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      return assign(layout->order, buffer, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
      return assign(layout->rows, buffer, bytes);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
      return assign(layout->cols, buffer, bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD:
      return assign(layout->ld, buffer, bytes);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return assign(layout->batches, buffer, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return assign(layout->batch_stride, buffer, bytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create(preference, LtPreference{});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy<LtPreference>(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t opaque,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* buffer, size_t bytes) {
  LtPreference* preference = inside<LtPreference>(opaque);
  if (preference == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return assign(preference->workspace, buffer, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return assign(preference->alignment[0], buffer, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return assign(preference->alignment[1], buffer, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return assign(preference->alignment[2], buffer, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return assign(preference->alignment[3], buffer, bytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t op,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference_opaque,
                                              int wanted, cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!inside<LtMatmul>(op) || !inside<LtLayout>(a) || !inside<LtLayout>(b) ||
      !inside<LtLayout>(c) || !inside<LtLayout>(d) || !inside<LtPreference>(preference_opaque) ||
      wanted < 1 || results == nullptr || found == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *found = 0;
  const LtProblem problem{*inside<LtMatmul>(op), *inside<LtLayout>(a), *inside<LtLayout>(b),
                          *inside<LtLayout>(c), *inside<LtLayout>(d)};
  const cublasStatus_t status = check_problem(problem);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const LtPreference& preference = *inside<LtPreference>(preference_opaque);
  uint64_t alignment = 16;
  for (const uint32_t given : preference.alignment)
    alignment = std::min<uint64_t>(alignment, given);
  if (alignment < size_of(number_of(problem.a.type))) return CUBLAS_STATUS_NOT_SUPPORTED;
  // The first choice wants room for partial sums, the second none.
  const uint64_t partial = (problem.d.rows * problem.d.cols * sizeof(float) + 255) / 256 * 256;
  for (const uint64_t workspace : {partial, uint64_t{0}}) {
    if (workspace > preference.workspace || *found == wanted) continue;
    cublasLtMatmulHeuristicResult_t& result = results[(*found)++];
    result = {};
    const LtAlgo algo{.workspace = workspace, .alignment = alignment};
    std::memcpy(&result.algo, &algo, sizeof(algo));
    result.workspaceSize = workspace;
    result.state = CUBLAS_STATUS_SUCCESS;
    result.wavesCount = 1;
  }
  return CUBLAS_STATUS_SUCCESS;
}
