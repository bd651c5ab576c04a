// The CPU backend: oneDNN for what it does well, loops compiled per instruction set for the rest.
// One file per family of operations beside this one.
#pragma once

#include <unordered_map>

#include "ops/cpu/dnnl_util.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/isa/isa.h"
#include "ops/ops.h"

namespace crema {

class CpuOps : public Ops {
 public:
  explicit CpuOps(const Isa& isa = best_isa());
  std::string describe() const override;

  std::optional<std::string> why_not(const ConvDesc& desc) const override;
  std::optional<std::string> why_not_precision(DType type) const override;
  bool computes(Family family, DType type) const override;
  Layout preferred(const ConvDesc& desc) const override;
  std::unique_ptr<ConvPlan> plan(const ConvDesc& desc) override;
  std::unique_ptr<LinearPlan> plan(const LinearDesc& desc) override;
  std::unique_ptr<PoolPlan> plan(const PoolDesc& desc) override;
  std::unique_ptr<NormPlan> plan(const NormDesc& desc) override;
  std::unique_ptr<LrnPlan> plan(const LrnDesc& desc) override;
  std::unique_ptr<SoftmaxPlan> plan(const SoftmaxDesc& desc) override;

  void gemm(bool ta, bool tb, float alpha, CTensor a, CTensor b, Tensor c, Write how) override;
  void unary(Unary kind, UnaryArgs args, CTensor x, Tensor y) override;
  void unary_backward(Unary kind, UnaryArgs args, CTensor x, CTensor y, CTensor dy,
                      Grad dx) override;
  void launch(std::string_view kernel, const void* functor, int64_t n) override;
  void reduce(std::string_view kernel, const void* functor, int64_t rows, int64_t cols) override;
  void convert(CTensor src, Tensor dst) override;
  void fill(float value, Tensor dst) override;
  void add(CTensor src, Tensor dst) override;
  void update(const UpdateRule& rule, CTensor grad, Tensors state, Tensor master,
              Tensor weight) override;

  const StepScalars* step_scalars() const override { return &step_; }
  StepScalars step() const override { return step_; }
  void set_step(const StepScalars& step) override { step_ = step; }
  void upload(const void* host, Tensor dst) override;
  void download(CTensor src, void* host) override;
  Buffer allocate(size_t bytes, Memory kind) override;
  size_t capacity() const override;
  void synchronize() override {}
  Fault* fault() override { return &fault_; }
  std::optional<Fault> take_fault() override;

  const Isa& isa() const { return isa_; }
  const DnnlContext& dnnl() const { return dnnl_; }
  const Gemm& matrix_product() const { return gemm_; }

 private:
  const KernelEntry& kernel(std::string_view name);

  const Isa& isa_;
  Gemm gemm_;
  DnnlContext dnnl_;
  StepScalars step_;
  Fault fault_;

  /// By where the name's text lies, which is one place per functor and object file.
  struct CachedKernel {
    const char* text = nullptr;
    const KernelEntry* entry = nullptr;
  };
  std::array<CachedKernel, 256> recent_kernels_;
  std::unordered_map<std::string_view, const KernelEntry*> kernels_;
  std::array<double, 4096> block_sums_{};
};

/// The inner product in bf16, by oneDNN.
std::unique_ptr<LinearPlan> make_low_linear(CpuOps& ops, const LinearDesc& desc);

/// Threaded elementwise loops over plain memory, for plans.
void unary_loop(const Isa& isa, Unary kind, const UnaryArgs& args, const float* x, float* y,
                int64_t n);
void add_loop(const Isa& isa, const float* src, float* dst, int64_t n);

}  // namespace crema
