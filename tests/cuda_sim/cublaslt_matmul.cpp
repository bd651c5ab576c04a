// cublasLtMatmul: D = epilogue(alpha * op(A) * op(B) + beta * C), with sums in double.
#include <algorithm>

#include "cuda_sim/cublaslt.h"
#include "cuda_sim/sim.h"

namespace crema::cuda_sim {
namespace {

struct Matmul {
  LtProblem p;
  LtAlgo algo;
  float alpha = 1, beta = 0;
  const void *a = nullptr, *b = nullptr, *c = nullptr;
  void *d = nullptr, *workspace = nullptr;
  int card = 0;

  int64_t m() const { return static_cast<int64_t>(p.d.rows); }
  int64_t n() const { return static_cast<int64_t>(p.d.cols); }
  int64_t k() const {
    return static_cast<int64_t>(p.op.trans_a == CUBLAS_OP_T ? p.a.rows : p.a.cols);
  }
  Number bias_type() const {
    return number_of(p.op.bias_type < 0 ? int{p.d.type} : p.op.bias_type);
  }
  bool adds_bias() const {
    return p.op.epilogue == CUBLASLT_EPILOGUE_BIAS || p.op.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
  }
  bool gives_bias_gradient() const {
    return p.op.epilogue == CUBLASLT_EPILOGUE_BGRADA || p.op.epilogue == CUBLASLT_EPILOGUE_BGRADB;
  }
  int64_t bias_count() const { return p.op.epilogue == CUBLASLT_EPILOGUE_BGRADB ? n() : m(); }
  size_t bias_bytes() const { return static_cast<size_t>(bias_count()) * size_of(bias_type()); }
};

int64_t place(const LtLayout& layout, int64_t row, int64_t col) {
  return layout.order == CUBLASLT_ORDER_COL ? row + col * layout.ld : row * layout.ld + col;
}

size_t span_bytes(const LtLayout& layout) {
  const auto rows = static_cast<int64_t>(layout.rows), cols = static_cast<int64_t>(layout.cols);
  const int64_t last =
      place(layout, rows - 1, cols - 1) + (layout.batches - 1) * layout.batch_stride;
  return static_cast<size_t>(last + 1) * size_of(number_of(layout.type));
}

/// Each column (or row) by itself: what lies between them may be unwritten.
bool check_matrix(const void* base, const LtLayout& layout, Access access, int card,
                  const std::string& what) {
  const bool by_col = layout.order == CUBLASLT_ORDER_COL;
  const auto length = static_cast<int64_t>(by_col ? layout.rows : layout.cols);
  const auto count = static_cast<int64_t>(by_col ? layout.cols : layout.rows);
  const size_t size = size_of(number_of(layout.type));
  if (!check_range(base, span_bytes(layout), Access::write, card, what)) return false;
  if (access == Access::write) return true;
  if (layout.ld == length && layout.batches == 1) {
    return check_range(base, span_bytes(layout), access, card, what);
  }
  for (int64_t i = 0; i < layout.batches * count; ++i) {
    const int64_t begin = i / count * layout.batch_stride + i % count * layout.ld;
    const auto* address = static_cast<const uint8_t*>(base) + static_cast<size_t>(begin) * size;
    if (!check_range(address, static_cast<size_t>(length) * size, access, card, what)) return false;
  }
  return true;
}

bool check_memory(const Matmul& mm) {
  const std::string name = "cublasLtMatmul: ";
  const LtProblem& p = mm.p;
  if (!check_matrix(mm.a, p.a, Access::read, mm.card, name + "A")) return false;
  if (!check_matrix(mm.b, p.b, Access::read, mm.card, name + "B")) return false;
  if (mm.beta != 0 && !check_matrix(mm.c, p.c, Access::read, mm.card, name + "C")) return false;
  if (!check_matrix(mm.d, p.d, Access::write, mm.card, name + "D")) return false;
  const size_t d_bytes = span_bytes(p.d);
  bool apart = !overlap(mm.d, d_bytes, mm.a, span_bytes(p.a)) &&
               !overlap(mm.d, d_bytes, mm.b, span_bytes(p.b));
  if (mm.beta != 0 && mm.c != mm.d) apart = apart && !overlap(mm.d, d_bytes, mm.c, span_bytes(p.c));
  if (mm.adds_bias() || mm.gives_bias_gradient()) {
    const Access access = mm.adds_bias() ? Access::read : Access::write;
    if (!check_range(p.op.bias, mm.bias_bytes(), access, mm.card, name + "the bias")) return false;
    apart = apart && !overlap(mm.d, d_bytes, p.op.bias, mm.bias_bytes());
  }
  if (mm.algo.workspace > 0) {
    if (!check_range(mm.workspace, mm.algo.workspace, Access::write, mm.card,
                     name + "the workspace")) {
      return false;
    }
    apart = apart && !overlap(mm.workspace, mm.algo.workspace, mm.d, d_bytes) &&
            !overlap(mm.workspace, mm.algo.workspace, mm.a, span_bytes(p.a)) &&
            !overlap(mm.workspace, mm.algo.workspace, mm.b, span_bytes(p.b));
  }
  if (!apart) violation(name + "D or the workspace overlaps what is read");
  return apart;
}

float element(const Matmul& mm, const LtLayout& layout, const void* base, int64_t index) {
  const float value = load(number_of(layout.type), base, index);
  return mm.p.op.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? round_to_tf32(value) : value;
}

/// op(X) as outer by inner floats: element (o, i) is X(row, col), swapped where `swap`.
std::vector<float> packed(const Matmul& mm, const LtLayout& layout, const void* base, bool swap,
                          int64_t outer, int64_t inner, int64_t batch) {
  std::vector<float> values(static_cast<size_t>(outer * inner));
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const int64_t at = swap ? place(layout, i, o) : place(layout, o, i);
      values[static_cast<size_t>(o * inner + i)] =
          element(mm, layout, base, at + batch * layout.batch_stride);
    }
  }
  return values;
}

void run_batch(const Matmul& mm, int64_t batch) {
  const LtProblem& p = mm.p;
  const int64_t m = mm.m(), n = mm.n(), k = mm.k();
  const std::vector<float> a = packed(mm, p.a, mm.a, p.op.trans_a != CUBLAS_OP_T, k, m, batch);
  const std::vector<float> b = packed(mm, p.b, mm.b, p.op.trans_b != CUBLAS_OP_T, n, k, batch);
  const Number out = number_of(p.d.type);
  const bool relu =
      p.op.epilogue == CUBLASLT_EPILOGUE_RELU || p.op.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
  std::vector<double> sums(static_cast<size_t>(m));
  for (int64_t col = 0; col < n; ++col) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t i = 0; i < k; ++i) {
      const double factor = b[static_cast<size_t>(col * k + i)];
      const float* column = a.data() + i * m;
      for (int64_t row = 0; row < m; ++row) sums[static_cast<size_t>(row)] += factor * column[row];
    }
    for (int64_t row = 0; row < m; ++row) {
      double value = static_cast<double>(mm.alpha) * sums[static_cast<size_t>(row)];
      const int64_t in_c = place(p.c, row, col) + batch * p.c.batch_stride;
      if (mm.beta != 0) value += static_cast<double>(mm.beta) * load(out, mm.c, in_c);
      if (mm.adds_bias()) value += load(mm.bias_type(), p.op.bias, row);
      if (relu && value < 0) value = 0;
      store(out, mm.d, place(p.d, row, col) + batch * p.d.batch_stride, static_cast<float>(value));
    }
  }
}

/// The sums of op(A)'s rows or of op(B)'s columns.
void write_bias_gradient(const Matmul& mm) {
  const LtProblem& p = mm.p;
  const bool of_a = p.op.epilogue == CUBLASLT_EPILOGUE_BGRADA;
  const LtLayout& layout = of_a ? p.a : p.b;
  const bool transposed = (of_a ? p.op.trans_a : p.op.trans_b) == CUBLAS_OP_T;
  for (int64_t i = 0; i < mm.bias_count(); ++i) {
    double sum = 0;
    for (int64_t j = 0; j < mm.k(); ++j) {
      const int64_t at = of_a != transposed ? place(layout, i, j) : place(layout, j, i);
      sum += load(number_of(layout.type), of_a ? mm.a : mm.b, at);
    }
    store(mm.bias_type(), const_cast<void*>(p.op.bias), i, static_cast<float>(sum));
  }
}

void run_matmul(const Matmul& mm) {
  if (!check_memory(mm)) return;
  if (mm.algo.workspace > 0) poison(mm.workspace, mm.algo.workspace);
  for (int64_t batch = 0; batch < mm.p.d.batches; ++batch) run_batch(mm, batch);
  if (mm.gives_bias_gradient()) write_bias_gradient(mm);
}

bool aligned(const void* address, uint64_t alignment) {
  return reinterpret_cast<uintptr_t>(address) % alignment == 0;
}

bool on_card(const void* address) { return find(address).where != Where::host; }

/// What the library sees when it is called.
cublasStatus_t check_call(const Matmul& mm, size_t workspace_bytes) {
  const cublasStatus_t status = check_problem(mm.p);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (mm.algo.magic != LtAlgo::kMagic) return CUBLAS_STATUS_INVALID_VALUE;
  for (const void* pointer :
       {mm.a, mm.b, static_cast<const void*>(mm.d), mm.beta != 0 ? mm.c : mm.d}) {
    if (pointer == nullptr || !on_card(pointer)) return CUBLAS_STATUS_INVALID_VALUE;
    if (!aligned(pointer, mm.algo.alignment)) return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (mm.algo.workspace > workspace_bytes) return CUBLAS_STATUS_INVALID_VALUE;
  if (mm.algo.workspace > 0 && (mm.workspace == nullptr || !aligned(mm.workspace, 256))) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool needs_bias = mm.adds_bias() || mm.gives_bias_gradient();
  if (needs_bias && (mm.p.op.bias == nullptr || !on_card(mm.p.op.bias))) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace crema::cuda_sim

using namespace crema::cuda_sim;

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t op, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, size_t workspace_bytes, cudaStream_t stream_handle) {
  const std::lock_guard<std::recursive_mutex> lock(big_lock());
  const StreamRef stream = stream_of(stream_handle);
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!inside<LtMatmul>(op) || !inside<LtLayout>(a_layout) || !inside<LtLayout>(b_layout) ||
      !inside<LtLayout>(c_layout) || !inside<LtLayout>(d_layout) || alpha == nullptr ||
      beta == nullptr || stream == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (inside<LtMatmul>(op)->pointer_mode != CUBLASLT_POINTER_MODE_HOST) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  Matmul mm;
  mm.p = {*inside<LtMatmul>(op), *inside<LtLayout>(a_layout), *inside<LtLayout>(b_layout),
          *inside<LtLayout>(c_layout), *inside<LtLayout>(d_layout)};
  mm.alpha = *static_cast<const float*>(alpha);
  mm.beta = *static_cast<const float*>(beta);
  mm.a = a;
  mm.b = b;
  mm.c = c;
  mm.d = d;
  mm.workspace = workspace;
  mm.card = stream->card;
  if (algo != nullptr) mm.algo = *reinterpret_cast<const LtAlgo*>(algo);
  const cublasStatus_t status = check_call(mm, workspace_bytes);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const cudaError_t enqueued =
      enqueue(stream, {.name = "cublasLtMatmul", .run = [mm] { run_matmul(mm); }});
  return enqueued == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
