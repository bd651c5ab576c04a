// The stand-in for cuBLASLt: products against values worked out by hand, and what it refuses.
#include <cublasLt.h>
#include <cuda_bf16.h>

#include "cuda_sim/selftest/sim_testing.h"

namespace crema::cuda_sim {
namespace {

constexpr size_t kWorkspace = 1 << 16;

/// D (m x n) = op(A) op(B) with k in between, all column-major and packed.
class LtTest : public SimTest {
 protected:
  void SetUp() override {
    SimTest::SetUp();
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtCreate(&handle_));
    workspace_ = unwritten(kWorkspace / sizeof(float));
  }
  void TearDown() override {
    for (cublasLtMatrixLayout_t layout : layouts_) cublasLtMatrixLayoutDestroy(layout);
    if (op_ != nullptr) cublasLtMatmulDescDestroy(op_);
    cublasLtDestroy(handle_);
    SimTest::TearDown();
  }

  cublasLtMatrixLayout_t layout(uint64_t rows, uint64_t cols, int64_t ld = 0,
                                cudaDataType type = CUDA_R_32F) {
    cublasLtMatrixLayout_t made = nullptr;
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS,
              cublasLtMatrixLayoutCreate(&made, type, rows, cols,
                                         ld == 0 ? static_cast<int64_t>(rows) : ld));
    layouts_.push_back(made);
    return made;
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t name, const T& value) {
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS,
              cublasLtMatmulDescSetAttribute(op_, name, &value, sizeof(value)));
  }
  void make_op(cublasComputeType_t compute = CUBLAS_COMPUTE_32F) {
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulDescCreate(&op_, compute, CUDA_R_32F));
  }
  cublasLtMatmulHeuristicResult_t heuristic(uint64_t room = kWorkspace, uint32_t alignment = 4) {
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &room, sizeof(room));
    for (const auto name :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      cublasLtMatmulPreferenceSetAttribute(preference, name, &alignment, sizeof(alignment));
    }
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    status_ =
        cublasLtMatmulAlgoGetHeuristic(handle_, op_, a_, b_, d_, d_, preference, 1, &found, &count);
    if (status_ == CUBLAS_STATUS_SUCCESS) {
      EXPECT_EQ(count, 1);
    }
    cublasLtMatmulPreferenceDestroy(preference);
    return found;
  }
  cublasStatus_t multiply(const void* a, const void* b, void* d, float beta = 0) {
    const auto found = heuristic();
    if (status_ != CUBLAS_STATUS_SUCCESS) return status_;
    return run(a, b, d, beta, &found.algo, workspace_, kWorkspace);
  }
  cublasStatus_t run(const void* a, const void* b, void* d, float beta,
                     const cublasLtMatmulAlgo_t* algo, void* workspace, size_t bytes) {
    const float alpha = 1;
    return cublasLtMatmul(handle_, op_, &alpha, a, a_, b, b_, &beta, d, d_, d, d_, algo, workspace,
                          bytes, stream_);
  }
  /// op(A) = [1 2 3; 4 5 6], op(B) = [1 0; 2 1; 0 -1].
  void make_small() {
    make_op();
    a_ = layout(2, 3);
    b_ = layout(3, 2);
    d_ = layout(2, 2);
  }
  float* small_a() { return device({1, 4, 2, 5, 3, 6}); }
  float* small_b() { return device({1, 2, 0, 0, 1, -1}); }

  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t op_ = nullptr;
  std::vector<cublasLtMatrixLayout_t> layouts_;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
  float* workspace_ = nullptr;
};

TEST_F(LtTest, MultipliesColumnMajor) {
  make_small();
  float* d = device({100, 100, 100, 100});
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, multiply(small_a(), small_b(), d));
  EXPECT_EQ(host(d, 4), (std::vector<float>{5, 14, -1, -1}));
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, multiply(small_a(), small_b(), d, 1));
  EXPECT_EQ(host(d, 4), (std::vector<float>{10, 28, -2, -2}));
}

TEST_F(LtTest, Transposes) {
  make_op();
  set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T);
  a_ = layout(3, 2);
  b_ = layout(2, 3);
  d_ = layout(2, 2);
  float* d = unwritten(4);
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS,
            multiply(device({1, 2, 3, 4, 5, 6}), device({1, 0, 2, 1, 0, -1}), d));
  EXPECT_EQ(host(d, 4), (std::vector<float>{5, 14, -1, -1}));
}

TEST_F(LtTest, LeavesWhatLiesBetweenColumns) {
  make_op();
  a_ = layout(2, 3);
  b_ = layout(3, 2);
  d_ = layout(2, 2, 3);
  float* d = device({7, 7, 7, 7, 7, 7});
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, multiply(small_a(), small_b(), d));
  EXPECT_EQ(host(d, 6), (std::vector<float>{5, 14, 7, -1, -1, 7}));
}

TEST_F(LtTest, Epilogues) {
  struct Row {
    cublasLtEpilogue_t epilogue;
    std::vector<float> d, bias;
  };
  const std::vector<Row> rows = {
      {CUBLASLT_EPILOGUE_RELU, {5, 14, 0, 0}, {-6, 2}},
      {CUBLASLT_EPILOGUE_BIAS, {-1, 16, -7, 1}, {-6, 2}},
      {CUBLASLT_EPILOGUE_RELU_BIAS, {0, 16, 0, 1}, {-6, 2}},
      {CUBLASLT_EPILOGUE_BGRADA, {5, 14, -1, -1}, {6, 15}},
      {CUBLASLT_EPILOGUE_BGRADB, {5, 14, -1, -1}, {3, 0}},
  };
  make_small();
  for (const Row& row : rows) {
    SCOPED_TRACE(static_cast<int>(row.epilogue));
    float* d = unwritten(4);
    float* bias = device({-6, 2});
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, row.epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, multiply(small_a(), small_b(), d));
    EXPECT_EQ(host(d, 4), row.d);
    EXPECT_EQ(host(bias, 2), row.bias);
  }
}

TEST_F(LtTest, RoundsToTf32OnlyWhereAsked) {
  const float fine = 1 + 0x1p-11f + 0x1p-12f;  // to 1 + 2^-10 in ten bits
  for (const bool rounds : {false, true}) {
    make_op(rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F);
    a_ = b_ = d_ = layout(1, 1);
    float* d = unwritten(1);
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, multiply(device({fine}), device({1}), d));
    EXPECT_EQ(host(d, 1)[0], rounds ? 1 + 0x1p-10f : fine);
    cublasLtMatmulDescDestroy(op_);
    op_ = nullptr;
  }
}

TEST_F(LtTest, TakesSixteenBitNumbers) {
  make_op();
  a_ = b_ = layout(1, 1, 1, CUDA_R_16BF);
  d_ = layout(1, 1);
  const float two = __uint_as_float(0x40003fc0u);  // bf16: 1.5, then 2
  float* packed = device({two});
  float* d = unwritten(1);
  const auto found = heuristic(kWorkspace, 2);
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, run(packed, reinterpret_cast<uint16_t*>(packed) + 1, d, 0,
                                       &found.algo, workspace_, kWorkspace));
  EXPECT_EQ(host(d, 1), std::vector<float>{3});
}

TEST_F(LtTest, RefusesWrongDescriptors) {
  make_small();
  float* d = unwritten(4);
  const float one = 1;
  cublasLtMatmulDesc_t wrong = reinterpret_cast<cublasLtMatmulDesc_t>(new uint64_t[32]());
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE,
            cublasLtMatmul(handle_, wrong, &one, small_a(), a_, small_b(), b_, &one, d, d_, d, d_,
                           nullptr, nullptr, 0, stream_));
  delete[] reinterpret_cast<uint64_t*>(wrong);
  EXPECT_EQ(CUBLAS_STATUS_NOT_INITIALIZED,
            cublasLtMatmul(nullptr, op_, &one, small_a(), a_, small_b(), b_, &one, d, d_, d, d_,
                           nullptr, nullptr, 0, stream_));
  const char byte = 0;
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE,
            cublasLtMatmulDescSetAttribute(op_, CUBLASLT_MATMUL_DESC_TRANSA, &byte, sizeof(byte)));
  b_ = layout(2, 2);
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE, multiply(small_a(), small_b(), d)) << "k differs";
  b_ = layout(3, 2, 2);
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE, multiply(small_a(), small_b(), d)) << "ld below rows";
  b_ = layout(3, 2, 3, CUDA_R_16F);
  EXPECT_EQ(CUBLAS_STATUS_NOT_SUPPORTED, multiply(small_a(), small_b(), d)) << "types differ";
}

TEST_F(LtTest, RefusesTooSmallAWorkspace) {
  make_small();
  float* d = unwritten(4);
  const auto found = heuristic();
  ASSERT_EQ(found.workspaceSize, 256u);
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE,
            run(small_a(), small_b(), d, 0, &found.algo, workspace_, 255));
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE,
            run(small_a(), small_b(), d, 0, &found.algo, workspace_ + 4, 256));
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE,
            run(small_a(), small_b(), d, 0, &found.algo, nullptr, 256));
  float* small = unwritten(32);  // said to be larger than it is
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, run(small_a(), small_b(), d, 0, &found.algo, small, 256));
  expect_violation("the workspace reaches 128 bytes beyond");
  EXPECT_EQ(heuristic(0).workspaceSize, 0u);
}

TEST_F(LtTest, UsesItsWorkspace) {
  make_small();
  float* d = unwritten(4);
  float* workspace = device(std::vector<float>(64, 1));
  const auto found = heuristic();
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, run(small_a(), small_b(), d, 0, &found.algo, workspace, 256));
  cudaStreamSynchronize(stream_);
  std::vector<float> seen(1);
  cudaMemcpyAsync(seen.data(), workspace + 63, 4, cudaMemcpyDefault, stream_);
  expect_violation("never written");
}

TEST_F(LtTest, RefusesWrongMemory) {
  make_small();
  std::vector<float> on_host(6);
  float* d = unwritten(4);
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE, multiply(on_host.data(), small_b(), d));
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE, multiply(small_a(), small_b(), on_host.data()));
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE, multiply(small_a(), small_b(), nullptr));
  const auto found = heuristic(kWorkspace, 16);
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE,
            run(small_a() + 1, small_b(), d, 0, &found.algo, workspace_, kWorkspace))
      << "less aligned than the algorithm was asked for";
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, multiply(unwritten(6), small_b(), d));
  expect_violation("cublasLtMatmul: A holds memory that was never written");
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, multiply(small_a(), small_b(), d, 1));
  expect_violation("cublasLtMatmul: C holds memory that was never written");
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, multiply(small_a(), small_b(), unwritten(3)));
  expect_violation("cublasLtMatmul: D reaches 4 bytes beyond");
  float* both = device({1, 4, 2, 5, 3, 6, 0, 0});
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, multiply(both, small_b(), both + 4));
  expect_violation("overlaps what is read");
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE, multiply(small_a(), small_b(), d)) << "no bias";
}

TEST_F(LtTest, RunsLateAndInAGraph) {
  make_small();
  float *a = small_a(), *b = small_b(), *d = device({0, 0, 0, 0});
  cudaStreamSynchronize(stream_);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, multiply(a, b, d, 1));
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &graph));
  ASSERT_EQ(cudaSuccess, cudaGraphInstantiate(&exec, graph, 0));
  cudaGraphDestroy(graph);
  for (int i = 0; i < 3; ++i) cudaGraphLaunch(exec, stream_);
  EXPECT_EQ(host(d, 4), (std::vector<float>{15, 42, -3, -3}));
  cudaGraphExecDestroy(exec);
}

}  // namespace
}  // namespace crema::cuda_sim
