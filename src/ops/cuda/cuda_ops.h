// The CUDA backend: cuDNN for convolutions, cuBLASLt for matrix products, kernels of our own for
// the rest. One in-order stream per Ops; one file per family of operations beside this one, named
// as in ops/cpu.
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>

#include "ops/cuda/cuda_api.h"
#include "ops/cuda/kernel_table.h"
#include "ops/ops.h"

namespace crema::cuda {

class Cudnn;
class Gemm;

/// A second stream of the card. Virtual, so that other libraries than this one can ask for it.
class CudaSideQueue : public SideQueue {
 public:
  virtual cudaStream_t stream() const = 0;
};

class CudaOps : public Ops {
 public:
  explicit CudaOps(const Device& device);
  ~CudaOps() override;
  std::string describe() const override { return describe_device(device_.index); }

  std::optional<std::string> why_not(const ConvDesc& desc) const override;
  std::optional<std::string> why_not_precision(DType type) const override;
  bool computes(Family, DType type) const override { return type == DType::f32 || is_low(type); }
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

  const StepScalars* step_scalars() const override;
  StepScalars step() const override { return step_; }
  void set_step(const StepScalars& step) override;
  void upload(const void* host, Tensor dst) override;
  void download(CTensor src, void* host) override;
  Buffer allocate(size_t bytes, Memory kind) override;
  bool shares_host_memory() const override { return false; }
  size_t capacity() const override { return device_bytes(); }
  void synchronize() override { stream_.synchronize(); }
  std::unique_ptr<SideQueue> side_queue() override;
  Fault* fault() override;
  std::optional<Fault> take_fault() override;

  bool can_record() const override { return true; }
  void begin_recording() override;
  Recording end_recording() override;
  void replay(const Recording& recording) override;

  cudaStream_t stream() const { return stream_.get(); }
  const Device& device() const { return device_; }
  Gemm& matrix_product() { return *gemm_; }
  /// Made when the first convolution is planned: loading cuDNN's engines takes a while.
  Cudnn& cudnn();

 private:
  const KernelEntry& kernel(std::string_view name);
  void refuse_recording() const;

  Device device_;
  Stream stream_;
  Buffer slots_;    // the fault, then the step scalars
  Buffer partial_;  // of sums over rows
  StepScalars step_;
  bool is_recording_ = false;
  std::unique_ptr<Gemm> gemm_;
  std::unique_ptr<Cudnn> cudnn_;
  std::unordered_map<std::string_view, const KernelEntry*> kernels_;
};

/// src into dst, or added to it (f32 only); equal shapes.
void convert_tensor(const CTensor& src, const Tensor& dst, Write how, cudaStream_t stream);

/// Where a part of a workspace begins; nullptr where there is none.
template <class T>
T* part(const Tensor& workspace, size_t offset) {
  return workspace ? reinterpret_cast<T*>(static_cast<char*>(workspace.data) + offset) : nullptr;
}

/// Adds up parts of a workspace, each 256-byte aligned, as the libraries like them.
class Parts {
 public:
  size_t add(size_t bytes) {
    const size_t at = total_;
    total_ += (bytes + 255) / 256 * 256;
    return at;
  }
  size_t total() const { return total_; }

 private:
  size_t total_ = 0;
};

}  // namespace crema::cuda
