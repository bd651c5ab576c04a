// Inner product: matrix products, the bias and the activation in the same pass.
#include "base/error.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/parallel.h"

namespace crema {
namespace {

class GemmLinearPlan : public LinearPlan {
 public:
  GemmLinearPlan(CpuOps& ops, const LinearDesc& desc) : ops_(ops), desc_(desc) {}

  void weights_changed(CTensor) override {}

  void forward(CTensor x, CTensor w, CTensor b, Tensor y) override {
    const MatrixView w_transposed =
        desc_.transposed ? MatrixView{w.f32(), desc_.n, 1} : MatrixView{w.f32(), 1, desc_.k};
    ops_.matrix_product().run({.a = {x.f32(), desc_.k, 1},
                               .b = w_transposed,
                               .c = y.f32(),
                               .c_row_stride = desc_.n,
                               .c_col_stride = 1,
                               .m = desc_.m,
                               .n = desc_.n,
                               .k = desc_.k,
                               .alpha = 1.0f,
                               .col_bias = desc_.bias ? b.f32() : nullptr,
                               .act = desc_.act.kind,
                               .slope = desc_.act.slope});
  }

  void backward_data(CTensor dy, CTensor w, Grad dx) override {
    if (!dx) return;
    ops_.gemm(false, desc_.transposed, 1.0f, matrix(dy, desc_.m, desc_.n), weights(w),
              matrix(dx.t, desc_.m, desc_.k), dx.how);
  }

  void backward_params(CTensor x, CTensor dy, Grad dw, Grad db) override {
    const CTensor x2 = matrix(x, desc_.m, desc_.k), dy2 = matrix(dy, desc_.m, desc_.n);
    if (dw) {
      const Tensor target = matrix(dw.t, rows(), cols());
      desc_.transposed ? ops_.gemm(true, false, 1.0f, x2, dy2, target, dw.how)
                       : ops_.gemm(true, false, 1.0f, dy2, x2, target, dw.how);
    }
    if (!db) return;
    const ColumnSums sums{dy.f32(), db.t.f32(), desc_.m, desc_.n, db.how == Write::accumulate};
    parallel_ranges(desc_.n, desc_.m * desc_.n, 64,
                    [&](int64_t begin, int64_t end) { ops_.isa().column_sums(sums, begin, end); });
  }

 private:
  static Tensor matrix(const Tensor& t, int64_t rows, int64_t cols) {
    return {t.data, {Shape{rows, cols}, DType::f32, Layout::nchw}};
  }
  static CTensor matrix(const CTensor& t, int64_t rows, int64_t cols) {
    return {t.data, {Shape{rows, cols}, DType::f32, Layout::nchw}};
  }
  int64_t rows() const { return desc_.transposed ? desc_.k : desc_.n; }
  int64_t cols() const { return desc_.transposed ? desc_.n : desc_.k; }
  CTensor weights(const CTensor& w) const { return matrix(w, rows(), cols()); }

  CpuOps& ops_;
  LinearDesc desc_;
};

}  // namespace

std::unique_ptr<LinearPlan> CpuOps::plan(const LinearDesc& desc) {
  if (desc.dtype == DType::f32) return std::make_unique<GemmLinearPlan>(*this, desc);
  if (const auto reason = why_not_precision(desc.dtype)) fail(*reason);
  return make_low_linear(*this, desc);
}

}  // namespace crema
