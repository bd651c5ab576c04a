// Every computation the trainer knows, declared once. Layers, net and solver call it; only ops/cpu,
// ops/cuda and tests/reference implement it. An Ops is one in-order queue on one device: calls
// enqueue and return, they touch host memory only in upload and download, and allocate nothing
// after set-up.
#pragma once

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/kernel.h"
#include "ops/tensor.h"

namespace crema {

// ---- Activations
// -----------------------------------------------------------------------------------------------

enum class ActKind : uint8_t { none, relu, relu6, elu };
/// Applied by a plan to its y. relu with slope s: max(x,0) + s*min(x,0); elu: x > 0 ? x :
/// slope*(e^x - 1).
struct Act {
  ActKind kind = ActKind::none;
  float slope = 0;
  friend bool operator==(const Act&, const Act&) = default;
};

// ---- Problems that a library plans
// -----------------------------------------------------------------------------

/// Sizes along the spatial axes, outermost first; as many as x has axes beyond N and C.
struct SpatialDims {
  int axes = 0;
  std::array<int64_t, 8> v{};
  int64_t operator[](int i) const { return v[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return v[static_cast<size_t>(i)]; }
  friend bool operator==(const SpatialDims&, const SpatialDims&) = default;
};
constexpr int kMaxSpatialAxes = 8;

/// Cross-correlation: x [N,C,...], w [K,C/groups,k...] (always nchw order), y [N,K,...]; dilation 1
/// = dense. y = act(conv(x, w) + b + residual). x, y and residual have one number type; w, b and
/// their gradients are f32.
struct ConvDesc {
  TensorDesc x, w, y;
  SpatialDims pad, stride, dilation;
  int groups = 1;
  bool bias = false, residual = false, need_dx = true, train = true;
  Act act;
  friend bool operator==(const ConvDesc&, const ConvDesc&) = default;
};

/// y [m,n] = act(x [m,k] * w^T + b); w is [n,k], or [k,n] when transposed. dtype is that of x and
/// y; w, b and their gradients are f32.
struct LinearDesc {
  int64_t m = 0, k = 0, n = 0;
  DType dtype = DType::f32;
  bool transposed = false, bias = false, need_dx = true, train = true;
  Act act;
  friend bool operator==(const LinearDesc&, const LinearDesc&) = default;
};

enum class PoolKind : uint8_t { max, average, stochastic };
/// Caffe's pooling. max: first of equal maxima wins, padding never does. average: the divisor
/// counts the window clipped to [-pad, size + pad). Every window begins inside the padded input.
struct PoolDesc {
  TensorDesc x, y;
  PoolKind kind = PoolKind::max;
  SpatialDims kernel, stride, pad;
  bool mask =
      false;  // forward also writes the flat index of each maximum within its plane, as float
  bool train = true;  // a backward will follow
  /// stochastic: element e of y, counted in N,C,H,W order, draws
  /// philox(seed, e / 4, StepScalars::forward_count).v[e % 4].
  uint64_t seed = 0;
  friend bool operator==(const PoolDesc&, const PoolDesc&) = default;
};

/// Batch normalisation over all axes but 1. y = act(gamma * (x - mean) / sqrt(variance + eps) +
/// beta).
struct NormDesc {
  TensorDesc x;
  float eps = 1e-5f;
  bool global_stats =
      false;  // mean and variance are given; otherwise taken from the batch (biased) and written
  bool affine = false;  // gamma and beta [C] are given
  bool train = true;
  Act act;
  friend bool operator==(const NormDesc&, const NormDesc&) = default;
};

/// across: y = x * (k + alpha/size * sum over size channels of x^2)^-beta. within: y = x * (1 +
/// alpha * mean of x^2 over the size x size window, padding counted)^-beta (Krizhevsky et al. 2012,
/// section 3.3).
struct LrnDesc {
  TensorDesc x;
  int size = 5;
  float alpha = 1, beta = 0.75f, k = 1;
  bool within = false, train = true;
  friend bool operator==(const LrnDesc&, const LrnDesc&) = default;
};

/// Softmax along one axis; the row maximum is subtracted first.
struct SoftmaxDesc {
  TensorDesc x;
  int axis = 1;
  friend bool operator==(const SoftmaxDesc&, const SoftmaxDesc&) = default;
};

// ---- Plans: a problem with every choice made. bind() again whenever the arena has moved.
// ------------------------

class Plan {
 public:
  virtual ~Plan() = default;
  virtual Needs needs() const { return {}; }
  virtual void bind(const Workspace&) {}
};

class ConvPlan : public Plan {
 public:
  /// Repacks w for both directions; called after bind and after every change of the weights, never
  /// per call.
  virtual void weights_changed(CTensor w) = 0;
  virtual void forward(CTensor x, CTensor w, CTensor b, CTensor residual, Tensor y) = 0;
  /// dy is the gradient before the activation (see act_backward); w as in forward.
  virtual void backward_data(CTensor dy, CTensor w, Grad dx) = 0;
  virtual void backward_params(CTensor x, CTensor dy, Grad dw, Grad db) = 0;
};

class LinearPlan : public Plan {
 public:
  virtual void weights_changed(CTensor w) = 0;
  virtual void forward(CTensor x, CTensor w, CTensor b, Tensor y) = 0;
  virtual void backward_data(CTensor dy, CTensor w, Grad dx) = 0;
  virtual void backward_params(CTensor x, CTensor dy, Grad dw, Grad db) = 0;
};

class PoolPlan : public Plan {
 public:
  /// mask: only where desc.mask is set.
  virtual void forward(CTensor x, Tensor y, Tensor mask) = 0;
  virtual void backward(CTensor x, CTensor y, CTensor dy, Grad dx) = 0;
};

class NormPlan : public Plan {
 public:
  /// mean and variance [C] are read when desc.global_stats, else written with this batch's.
  virtual void forward(CTensor x, Tensor mean, Tensor variance, CTensor gamma, CTensor beta,
                       Tensor y) = 0;
  /// mean and variance as forward left them; dgamma and dbeta only where desc.affine. y is read
  /// only for desc.act.
  virtual void backward(CTensor x, CTensor y, CTensor mean, CTensor variance, CTensor gamma,
                        CTensor dy, Grad dx, Grad dgamma, Grad dbeta) = 0;
};

class LrnPlan : public Plan {
 public:
  virtual void forward(CTensor x, Tensor y) = 0;
  virtual void backward(CTensor x, CTensor y, CTensor dy, Grad dx) = 0;
};

class SoftmaxPlan : public Plan {
 public:
  virtual void forward(CTensor x, Tensor y) = 0;
  virtual void backward(CTensor y, CTensor dy, Grad dx) = 0;
};

// ---- Elementwise
// -----------------------------------------------------------------------------------------------

enum class Unary : uint8_t {
  relu,
  relu6,
  elu,
  sigmoid,
  tanh,
  swish,
  bnll,
  absval,
  power,
  exp,
  log,
  clip,
  threshold
};
/// The formula's numbers. relu: a = slope; elu: a = alpha; swish: a = beta; power: (b + a*x)^c;
/// exp: e^(b + a*x) with the base's logarithm folded into a and b; log: c * ln(b + a*x) with c =
/// 1/ln(base); clip: a = min, b = max; threshold: x > a.
struct UnaryArgs {
  float a = 0, b = 0, c = 0;
};

// ---- Update rules
// ----------------------------------------------------------------------------------------------

enum class Rule : uint8_t { sgd, nesterov, adagrad, rmsprop, adadelta, adam };
/// One parameter group's update; formulas in caffe terms: g = grad * StepScalars::grad_scale +
/// decay * w (l2) or decay * sign(w) (l1); rate = StepScalars::rate * lr_mult.
struct UpdateRule {
  Rule rule = Rule::sgd;
  float lr_mult = 1, decay = 0;
  bool l1 = false;
  float momentum = 0, momentum2 = 0.999f, rms_decay = 0.99f, delta = 1e-8f;
};
/// How many history tensors a rule keeps per parameter: 1, or 2 (adadelta, adam).
constexpr int history_count(Rule rule) {
  return rule == Rule::adadelta || rule == Rule::adam ? 2 : 1;
}

/// Numbers that change from step to step; kernels read them from device memory by pointer.
struct StepScalars {
  float rate = 0;
  float grad_scale = 1;       // 1 / iter_size, times the clip factor, over the loss scale
  float loss_scale = 1;       // what backward multiplies every gradient by
  float adam_correction = 1;  // sqrt(1 - momentum2^t) / (1 - momentum^t)
  int32_t iteration = 0;
  uint64_t forward_count = 0;  // forward passes of this net: what dropout and friends draw by
};

// ---- Number types
// ---------------------------------------------------------------------------------------------

constexpr bool is_low(DType type) { return type == DType::bf16 || type == DType::f16; }

/// Groups of operations that a backend has for 16-bit tensors all at once, or not. Numbers are
/// rounded when they are written; sums, statistics and parameters are f32. Convolutions have
/// why_not(ConvDesc).
enum class Family : uint8_t {
  unary,
  linear,
  pool,      // maximum and average; the mask is f32
  norm,      // mean, variance, gamma, beta and their gradients are f32
  elements,  // the functors of ops/kernels/low_*.h
};

// ---- The interface
// ---------------------------------------------------------------------------------------------

enum class Memory : uint8_t { device, pinned_host };

/// Memory that an Ops gave; freed with the last owner. 64-byte aligned, zero-filled.
using Buffer = std::shared_ptr<void>;

/// Calls that an Ops kept; freed with the last owner.
using Recording = std::shared_ptr<void>;

/// A second in-order queue of an Ops' device, for what runs beside the Ops' own calls: copies, and
/// sums over ranks. None of its calls can be recorded. The Ops must outlive its use.
class SideQueue {
 public:
  virtual ~SideQueue() = default;
  /// What is enqueued here from now on comes after all that the Ops has been given.
  virtual void follow() = 0;
  /// What the Ops is given from now on comes after all that is here.
  virtual void join() = 0;
  /// As Ops::upload; host is pinned memory, and stays as it is until synchronize().
  virtual void upload(const void* host, Tensor dst) = 0;
  /// The bytes are in host, which is pinned memory, after synchronize().
  virtual void download(CTensor src, void* host) = 0;
  /// Waits until all that is here is done.
  virtual void synchronize() = 0;
};

class Ops {
 public:
  virtual ~Ops() = default;
  /// "CPU (2 threads, avx2)" or the card's name.
  virtual std::string describe() const = 0;

  /// Why this backend cannot do the problem, or nothing when it can.
  virtual std::optional<std::string> why_not(const ConvDesc&) const = 0;
  /// Why this backend cannot hold a net's blobs in that number type, or nothing when it can: then
  /// convert, fill and add take it.
  virtual std::optional<std::string> why_not_precision(DType type) const {
    if (type == DType::f32) return std::nullopt;
    return "only f32 is there";
  }
  /// Whether operations of that family take tensors of a type for which why_not_precision has no
  /// reason.
  virtual bool computes(Family, DType type) const { return type == DType::f32; }
  /// The layout in which the problem runs fastest; net/layout asks, it never guesses by device.
  virtual Layout preferred(const ConvDesc&) const = 0;
  virtual std::unique_ptr<ConvPlan> plan(const ConvDesc&) = 0;  // these throw Error with the reason
  virtual std::unique_ptr<LinearPlan> plan(const LinearDesc&) = 0;
  virtual std::unique_ptr<PoolPlan> plan(const PoolDesc&) = 0;
  virtual std::unique_ptr<NormPlan> plan(const NormDesc&) = 0;
  virtual std::unique_ptr<LrnPlan> plan(const LrnDesc&) = 0;
  virtual std::unique_ptr<SoftmaxPlan> plan(const SoftmaxDesc&) = 0;

  /// c [m,n] (+)= alpha * op(a) * op(b), row-major 2-D tensors; op transposes where ta / tb. a
  /// [m,k] or [k,m].
  virtual void gemm(bool ta, bool tb, float alpha, CTensor a, CTensor b, Tensor c, Write) = 0;
  virtual void unary(Unary, UnaryArgs, CTensor x, Tensor y) = 0;  // y may be x
  /// dx (+)= dy * f'(x). The formulas may use x or y, whichever is exact; dx may be dy. y may be
  /// empty for all but sigmoid, tanh, elu and exp; x may be empty for relu (slope >= 0), relu6, elu
  /// (alpha >= 0), sigmoid, tanh and exp.
  virtual void unary_backward(Unary, UnaryArgs, CTensor x, CTensor y, CTensor dy, Grad dx) = 0;
  /// Calls functor(i) for 0 <= i < n; see run().
  virtual void launch(std::string_view kernel, const void* functor, int64_t n) = 0;
  /// Sums functor(row, col) over each row in a fixed order and calls done(row, sum); see
  /// run_rows().
  virtual void reduce(std::string_view kernel, const void* functor, int64_t rows, int64_t cols) = 0;
  /// From any dtype and layout to any other; equal shapes. Also the plain copy.
  virtual void convert(CTensor src, Tensor dst) = 0;
  virtual void fill(float value, Tensor dst) = 0;
  /// dst += src, equal shapes and layouts.
  virtual void add(CTensor src, Tensor dst) = 0;
  /// One step of the rule over a whole group's contiguous memory: reads grad, updates state, master
  /// and, where given, the low-precision copy weight. state holds history_count(rule) tensors.
  virtual void update(const UpdateRule&, CTensor grad, Tensors state, Tensor master,
                      Tensor weight) = 0;

  /// Device memory of the step scalars; set_step enqueues a copy into it, step() is what it was
  /// last given.
  virtual const StepScalars* step_scalars() const = 0;
  virtual StepScalars step() const = 0;
  virtual void set_step(const StepScalars&) = 0;

  /// dst.desc.bytes() bytes, same order. Pageable memory may be changed at once; pinned memory only
  /// after a synchronize() or download().
  virtual void upload(const void* host, Tensor dst) = 0;
  virtual void download(CTensor src, void* host) = 0;      // returns when the bytes are there
  virtual Buffer allocate(size_t bytes, Memory kind) = 0;  // at set-up only
  /// True where the host reads and writes device memory by the same pointers.
  virtual bool shares_host_memory() const { return true; }
  /// Bytes of memory that the device has for us in all; 0: not known.
  virtual size_t capacity() const { return 0; }
  virtual void synchronize() = 0;
  /// A new queue beside this one; nullptr where the device has none.
  virtual std::unique_ptr<SideQueue> side_queue() { return nullptr; }
  /// Device memory that kernels write faults to, and the host's reading of it, which waits for the
  /// queue.
  virtual Fault* fault() = 0;
  virtual std::optional<Fault> take_fault() = 0;

  /// Whether calls can be recorded: between begin_recording() and end_recording() they are not done
  /// but kept, and replay() enqueues them all at once, with the same pointers and numbers. upload,
  /// download, set_step, synchronize and plans' first calls cannot be recorded.
  virtual bool can_record() const { return false; }
  virtual void begin_recording() {}
  virtual Recording end_recording() { return nullptr; }
  virtual void replay(const Recording&) {}
};

/// Calls f(i) for 0 <= i < n on the device of ops.
template <class F>
void run(Ops& ops, const F& f, int64_t n) {
  ops.launch(kernel_name<F>(), &f, n);
}
/// Sums f(row, col) over cols for each row and calls f.done(row, sum), on the device of ops. The
/// order of the sum depends on nothing but cols, so the bits are the same in each run and for any
/// number of threads.
template <class F>
void run_rows(Ops& ops, const F& f, int64_t rows, int64_t cols) {
  ops.reduce(kernel_name<F>(), &f, rows, cols);
}

/// dy *= act'(y), in place on dy's memory or into another tensor: what a layer that absorbed an
/// activation does first.
void act_backward(Ops& ops, const Act& act, CTensor y, CTensor dy, Tensor dx);
/// The Unary that an activation is, with its numbers.
Unary unary_of(const Act& act);
UnaryArgs unary_args_of(const Act& act);

/// Which device: cpu, or a GPU by index.
struct Device {
  bool gpu = false;
  int index = 0;
  bool tf32 = false;       // a GPU may round f32 to 10 bits of mantissa in products
  std::string autotune{};  // a GPU measures cuDNN's engines and keeps the choices in this file;
                           // empty: it goes by the library's heuristics
};
/// The only place that names a backend. Throws Error when that backend was not built or its device
/// is not there.
std::shared_ptr<Ops> make_ops(const Device& device);
/// True when a GPU backend was built and at least one device answers.
bool gpu_present();

}  // namespace crema
