// cuBLASLt knows column-major matrices: a row-major product is written as its transpose, c^T =
// op(b)^T * op(a)^T, so that a bias per column of c is the library's bias per row.
#include "ops/cuda/gemm.h"

#include <cublasLt.h>

#include <cstring>

#include "base/error.h"
#include "ops/cuda/cuda_ops.h"

namespace crema::cuda {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;

void check_lt(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    fail("cuBLASLt: ", what, " failed: ", cublasLtGetStatusString(status));
  }
}

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::f16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    default:
      fail("matrix products take f32, f16 and bf16");
  }
}

/// The largest power of two, up to 256, that divides an address.
uint32_t alignment_of(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer) | 256;
  return static_cast<uint32_t>(address & (~address + 1));
}

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// What a plan depends on, as bytes.
std::string key_of(const GemmCall& call) {
  std::string key;
  for (const int64_t size : {call.m, call.n, call.k}) append(key, size);
  for (const void* p : {call.a, call.b, static_cast<const void*>(call.c)}) {
    append(key, alignment_of(p));
  }
  const char flags[] = {static_cast<char>(call.ta),    static_cast<char>(call.tb),
                        static_cast<char>(call.input), static_cast<char>(call.output),
                        static_cast<char>(call.how),   static_cast<char>(call.bias != nullptr),
                        static_cast<char>(call.relu)};
  key.append(flags, sizeof flags);
  return key;
}

class MatrixLayout {
 public:
  /// A column-major matrix.
  MatrixLayout(DType dtype, int64_t rows, int64_t cols) {
    check_lt(cublasLtMatrixLayoutCreate(&layout_, type_of(dtype), static_cast<uint64_t>(rows),
                                        static_cast<uint64_t>(cols), rows),
             "cublasLtMatrixLayoutCreate");
  }
  ~MatrixLayout() { cublasLtMatrixLayoutDestroy(layout_); }
  MatrixLayout(const MatrixLayout&) = delete;
  MatrixLayout& operator=(const MatrixLayout&) = delete;
  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

class MatmulDesc {
 public:
  explicit MatmulDesc(cublasComputeType_t compute) {
    check_lt(cublasLtMatmulDescCreate(&desc_, compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
  }
  ~MatmulDesc() { cublasLtMatmulDescDestroy(desc_); }
  MatmulDesc(const MatmulDesc&) = delete;
  MatmulDesc& operator=(const MatmulDesc&) = delete;
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check_lt(cublasLtMatmulDescSetAttribute(desc_, attribute, &value, sizeof value),
             "cublasLtMatmulDescSetAttribute");
  }
  cublasLtMatmulDesc_t get() const { return desc_; }

 private:
  cublasLtMatmulDesc_t desc_ = nullptr;
};

class Preference {
 public:
  Preference() {
    check_lt(cublasLtMatmulPreferenceCreate(&preference_), "cublasLtMatmulPreferenceCreate");
  }
  ~Preference() { cublasLtMatmulPreferenceDestroy(preference_); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    check_lt(cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof value),
             "cublasLtMatmulPreferenceSetAttribute");
  }
  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  cublasLtMatmulPreference_t preference_ = nullptr;
};

cublasLtEpilogue_t epilogue_of(const GemmCall& call) {
  if (call.bias) return call.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  return call.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
}

cublasComputeType_t compute_of(const GemmCall& call, bool allow_tf32) {
  const bool rounds = allow_tf32 && call.input == DType::f32;
  return rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

}  // namespace

struct Gemm::Handle {
  Handle() { check_lt(cublasLtCreate(&handle), "cublasLtCreate"); }
  ~Handle() { cublasLtDestroy(handle); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  cublasLtHandle_t handle = nullptr;
};

/// In the library's terms its A is our b and its B our a.
struct Gemm::Problem {
  Problem(const GemmCall& call, bool allow_tf32)
      : desc(compute_of(call, allow_tf32)),
        b(call.input, call.tb ? call.k : call.n, call.tb ? call.n : call.k),
        a(call.input, call.ta ? call.m : call.k, call.ta ? call.k : call.m),
        c(call.output, call.n, call.m) {
    desc.set(CUBLASLT_MATMUL_DESC_TRANSA, call.tb ? CUBLAS_OP_T : CUBLAS_OP_N);
    desc.set(CUBLASLT_MATMUL_DESC_TRANSB, call.ta ? CUBLAS_OP_T : CUBLAS_OP_N);
    desc.set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(call));
    if (call.bias) desc.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(call.bias));
  }
  MatmulDesc desc;
  MatrixLayout b, a, c;
  cublasLtMatmulAlgo_t algo{};
};

Gemm::Gemm(const Stream& stream, bool allow_tf32)
    : stream_(stream),
      allow_tf32_(allow_tf32),
      workspace_(allocate(kWorkspaceBytes, Memory::device, stream)),
      handle_(std::make_unique<Handle>()) {}

Gemm::~Gemm() = default;

Gemm::Problem& Gemm::problem_of(const GemmCall& call) {
  std::unique_ptr<Problem>& known = problems_[key_of(call)];
  if (known) return *known;
  auto problem = std::make_unique<Problem>(call, allow_tf32_);
  Preference preference;
  preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(call.b));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(call.a));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(call.c));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(call.c));
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  check_lt(cublasLtMatmulAlgoGetHeuristic(handle_->handle, problem->desc.get(), problem->b.get(),
                                          problem->a.get(), problem->c.get(), problem->c.get(),
                                          preference.get(), 1, &result, &found),
           "cublasLtMatmulAlgoGetHeuristic");
  require(found > 0, "cuBLASLt has no algorithm for a product of ", call.m, " x ", call.k, " x ",
          call.n);
  problem->algo = result.algo;
  known = std::move(problem);
  return *known;
}

void Gemm::run(const GemmCall& call) {
  Problem& problem = problem_of(call);
  if (call.bias) {
    problem.desc.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(call.bias));
  }
  const float alpha = call.alpha, beta = call.how == Write::accumulate ? 1.0f : 0.0f;
  check_lt(
      cublasLtMatmul(handle_->handle, problem.desc.get(), &alpha, call.b, problem.b.get(), call.a,
                     problem.a.get(), &beta, call.c, problem.c.get(), call.c, problem.c.get(),
                     &problem.algo, workspace_.get(), kWorkspaceBytes, stream_.get()),
      "cublasLtMatmul");
}

void CudaOps::gemm(bool ta, bool tb, float alpha, CTensor a, CTensor b, Tensor c, Write how) {
  const int64_t m = c.shape()[0], n = c.shape()[1], k = a.shape()[ta ? 0 : 1];
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (how == Write::overwrite) fill(0, c);
    return;
  }
  gemm_->run({.a = a.data,
              .b = b.data,
              .c = c.data,
              .m = m,
              .n = n,
              .k = k,
              .ta = ta,
              .tb = tb,
              .input = a.desc.dtype,
              .output = c.desc.dtype,
              .alpha = alpha,
              .how = how});
}

}  // namespace crema::cuda
