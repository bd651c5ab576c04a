// What the CUDA backend owns: memory, the step scalars, the fault slot, its table of kernels.
#include "ops/cuda/cuda_ops.h"

#include "base/error.h"
#include "ops/cuda/autotune.h"
#include "ops/cuda/cuda_library.h"
#include "ops/cuda/cudnn_conv.h"
#include "ops/cuda/gemm.h"
#include "ops/cuda/step_slot.h"

namespace crema::cuda {
namespace {

constexpr size_t kStepAt = 64, kSlotBytes = 256;
static_assert(sizeof(Fault) <= kStepAt);
constexpr int64_t kPartialSums = int64_t{1} << 20;

int checked_index(const Device& device) {
  const int count = device_count();
  require(device.index >= 0 && device.index < count, "--gpu ", device.index, ": there ",
          count == 1 ? "is " : "are ", count, count == 1 ? " GPU" : " GPUs",
          count > 0 ? str(", numbered from 0 to ", count - 1) : std::string(": use --cpu"));
  check(cudaSetDevice(device.index), "cudaSetDevice");
  return device.index;
}

class Library : public CudaLibrary {
 public:
  int device_count() const override { return cuda::device_count(); }
  std::shared_ptr<Ops> make(const Device& device) const override {
    checked_index(device);
    return std::make_shared<CudaOps>(device);
  }
};

class Side final : public CudaSideQueue {
 public:
  explicit Side(const Stream& main) : main_(main) {}
  void follow() override { mark_.order(main_, stream_); }
  void join() override { mark_.order(stream_, main_); }
  void upload(const void* host, Tensor dst) override {
    copy(host, dst.data, dst.desc.bytes(), stream_);
  }
  void download(CTensor src, void* host) override {
    copy(src.data, host, src.desc.bytes(), stream_);
  }
  void synchronize() override { stream_.synchronize(); }
  cudaStream_t stream() const override { return stream_.get(); }

 private:
  const Stream& main_;
  Stream stream_;
  Mark mark_;
};

}  // namespace

CudaOps::CudaOps(const Device& device)
    : device_(device),
      slots_(cuda::allocate(kSlotBytes, Memory::device, stream_)),
      partial_(cuda::allocate(kPartialSums * sizeof(double), Memory::device, stream_)),
      gemm_(std::make_unique<Gemm>(stream_, device.tf32)) {
  for (int i = 0; i < kKernelCount; ++i) kernels_.emplace(kKernels[i].name, &kKernels[i]);
  set_step({});
}

CudaOps::~CudaOps() = default;

std::optional<std::string> CudaOps::why_not_precision(DType type) const {
  if (type == DType::f32 || type == DType::f16) return std::nullopt;
  if (type != DType::bf16) return "a GPU has f32, bf16 and f16 only";
  const int architecture = architecture_of(device_.index);
  if (architecture >= 80) return std::nullopt;
  return str("sm_", architecture, " does not multiply bf16 numbers; f16 is there");
}

Cudnn& CudaOps::cudnn() {
  if (cudnn_) return *cudnn_;
  cudnn_ = std::make_unique<Cudnn>(stream_.get());
  if (device_.autotune.empty()) return *cudnn_;
  const auto tune = std::make_shared<Autotune>(
      device_.autotune, str(describe(), " cuDNN ", cudnnGetVersion()), stream_);
  cudnn_->choose_by(
      [this, tune](const ConvProblem& problem, const EngineRules& rules, const ConvPlans& plans) {
        return tune->choose(cudnn_->handle(), problem, rules, plans);
      });
  return *cudnn_;
}

const KernelEntry& CudaOps::kernel(std::string_view name) {
  const auto found = kernels_.find(name);
  require(found != kernels_.end(), "no kernel is called ", name,
          ": its struct must stand at the start of a line in ops/kernels/*.h");
  return *found->second;
}

void CudaOps::launch(std::string_view name, const void* functor, int64_t n) {
  if (n > 0) kernel(name).launch(functor, n, stream());
}

void CudaOps::reduce(std::string_view name, const void* functor, int64_t rows, int64_t cols) {
  if (rows <= 0) return;
  kernel(name).reduce(functor, {rows, cols, static_cast<double*>(partial_.get()), kPartialSums},
                      stream());
}

const StepScalars* CudaOps::step_scalars() const {
  return reinterpret_cast<const StepScalars*>(static_cast<char*>(slots_.get()) + kStepAt);
}

void CudaOps::set_step(const StepScalars& step) {
  refuse_recording();
  step_ = step;
  store_step(step, const_cast<StepScalars*>(step_scalars()), stream());
}

void CudaOps::upload(const void* host, Tensor dst) {
  refuse_recording();
  copy(host, dst.data, dst.desc.bytes(), stream_);
}

void CudaOps::download(CTensor src, void* host) {
  refuse_recording();
  copy(src.data, host, src.desc.bytes(), stream_);
  synchronize();
}

Buffer CudaOps::allocate(size_t bytes, Memory kind) { return cuda::allocate(bytes, kind, stream_); }

std::unique_ptr<SideQueue> CudaOps::side_queue() { return std::make_unique<Side>(stream_); }

Fault* CudaOps::fault() { return static_cast<Fault*>(slots_.get()); }

std::optional<Fault> CudaOps::take_fault() {
  Fault taken;
  copy(fault(), &taken, sizeof taken, stream_);
  synchronize();
  if (!taken.set) return std::nullopt;
  clear(fault(), sizeof(Fault), stream_);
  return taken;
}

void CudaOps::refuse_recording() const {
  require(!is_recording_,
          "a layer that moves data between host and GPU was recorded: its traits "
          "must say calls_host");
}

void CudaOps::begin_recording() {
  cuda::begin_recording(stream_);
  is_recording_ = true;
}

Recording CudaOps::end_recording() {
  is_recording_ = false;
  return std::make_shared<Graph>(stream_);
}

void CudaOps::replay(const Recording& recording) {
  static_cast<const Graph*>(recording.get())->launch(stream_);
}

}  // namespace crema::cuda

extern "C" const crema::CudaLibrary* crema_cuda_library() {
  static const crema::cuda::Library library;
  return &library;
}
