// Inner product: matrix products with bias and ReLU on the way out; other activations follow. For
// 16-bit blobs a copy of the weights is made in their type once per update, and bias and activation
// are one kernel behind the product: the library would want a bias of 16 bits.
#include "base/error.h"
#include "ops/cuda/channel_sums.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/epilogue.h"
#include "ops/cuda/gemm.h"

namespace crema::cuda {
namespace {

class GemmLinearPlan : public LinearPlan {
 public:
  GemmLinearPlan(CudaOps& ops, const LinearDesc& desc) : ops_(ops), desc_(desc) {}

  Needs needs() const override {
    const auto weights = static_cast<size_t>(desc_.k * desc_.n);
    return {.scratch = desc_.train && desc_.bias ? bias_gradient_bytes(output()) : 0,
            .packed = is_low(desc_.dtype) ? weights * size_of(desc_.dtype) : 0};
  }
  void bind(const Workspace& workspace) override {
    scratch_ = workspace.scratch.data;
    packed_ = workspace.packed.data;
  }
  void weights_changed(CTensor w) override {
    if (!is_low(desc_.dtype)) return;
    ops_.convert(matrix(w, rows(), cols()),
                 {packed_, {.shape = {rows(), cols()}, .dtype = desc_.dtype}});
  }

  void forward(CTensor x, CTensor w, CTensor b, Tensor y) override {
    if (desc_.m == 0 || desc_.n == 0) return;
    require(desc_.k > 0, "an inner product over 0 values");
    if (is_low(desc_.dtype)) return forward_low(x, b, y);
    const bool is_relu = desc_.act.kind == ActKind::relu && desc_.act.slope == 0;
    ops_.matrix_product().run({.a = x.data,
                               .b = w.data,
                               .c = y.data,
                               .m = desc_.m,
                               .n = desc_.n,
                               .k = desc_.k,
                               .tb = !desc_.transposed,
                               .input = x.desc.dtype,
                               .output = y.desc.dtype,
                               .bias = desc_.bias ? b.f32() : nullptr,
                               .relu = is_relu});
    if (desc_.act.kind != ActKind::none && !is_relu) {
      ops_.unary(unary_of(desc_.act), unary_args_of(desc_.act), y, y);
    }
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
    if (db) bias_gradient({dy.data, output()}, db, scratch_, ops_.stream());
  }

 private:
  void forward_low(const CTensor& x, const CTensor& b, const Tensor& y) {
    ops_.matrix_product().run({.a = x.data,
                               .b = packed_,
                               .c = y.data,
                               .m = desc_.m,
                               .n = desc_.n,
                               .k = desc_.k,
                               .tb = !desc_.transposed,
                               .input = desc_.dtype,
                               .output = desc_.dtype});
    if (!desc_.bias && desc_.act.kind == ActKind::none) return;
    add_bias_and_activate({y.data, output()}, desc_.bias ? b : CTensor(), {}, desc_.act,
                          ops_.stream());
  }

  TensorDesc output() const { return {.shape = {desc_.m, desc_.n}, .dtype = desc_.dtype}; }
  CTensor weights(const CTensor& w) const {
    if (!is_low(desc_.dtype)) return matrix(w, rows(), cols());
    return {packed_, {.shape = {rows(), cols()}, .dtype = desc_.dtype}};
  }
  static Tensor matrix(const Tensor& t, int64_t rows, int64_t cols) {
    return {t.data, {.shape = Shape{rows, cols}, .dtype = t.desc.dtype}};
  }
  static CTensor matrix(const CTensor& t, int64_t rows, int64_t cols) {
    return {t.data, {.shape = Shape{rows, cols}, .dtype = t.desc.dtype}};
  }
  int64_t rows() const { return desc_.transposed ? desc_.k : desc_.n; }
  int64_t cols() const { return desc_.transposed ? desc_.n : desc_.k; }

  CudaOps& ops_;
  LinearDesc desc_;
  void *scratch_ = nullptr, *packed_ = nullptr;  // packed: 16-bit weights
};

}  // namespace

std::unique_ptr<LinearPlan> CudaOps::plan(const LinearDesc& desc) {
  return std::make_unique<GemmLinearPlan>(*this, desc);
}

}  // namespace crema::cuda
