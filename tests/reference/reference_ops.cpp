// The oracle itself: memory, queue (there is none: every call is done when it returns) and plain
// operations.
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "reference/indexing.h"
#include "reference/kernel_table.h"
#include "reference/plans.h"
#include "reference/reference.h"

namespace crema {
namespace reference {
namespace {

constexpr size_t kAlignment = 64;

class ReferenceOps : public Ops {
 public:
  std::string describe() const override { return "reference (float64)"; }

  std::optional<std::string> why_not(const ConvDesc& desc) const override {
    if (desc.x.dtype != DType::f32) return "the oracle stores f32 only";
    return std::nullopt;
  }
  Layout preferred(const ConvDesc&) const override { return Layout::nchw; }
  std::unique_ptr<ConvPlan> plan(const ConvDesc& desc) override {
    if (const auto reason = why_not(desc)) fail(*reason);
    return make_plan(desc);
  }
  std::unique_ptr<LinearPlan> plan(const LinearDesc& desc) override { return make_plan(desc); }
  std::unique_ptr<PoolPlan> plan(const PoolDesc& desc) override { return make_plan(desc, &step_); }
  std::unique_ptr<NormPlan> plan(const NormDesc& desc) override { return make_plan(desc); }
  std::unique_ptr<LrnPlan> plan(const LrnDesc& desc) override { return make_plan(desc); }
  std::unique_ptr<SoftmaxPlan> plan(const SoftmaxDesc& desc) override { return make_plan(desc); }

  void gemm(bool ta, bool tb, float alpha, CTensor a, CTensor b, Tensor c, Write how) override {
    const int64_t m = c.shape()[0], n = c.shape()[1], k = a.shape()[ta ? 0 : 1];
    std::vector<double> result;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += static_cast<double>(a.f32()[ta ? p * m + i : i * k + p]) *
                 b.f32()[tb ? j * k + p : p * n + j];
        }
        result.push_back(alpha * sum);
      }
    }
    write(result, {c, how});
  }

  void unary(Unary kind, UnaryArgs args, CTensor x, Tensor y) override {
    for (int64_t i = 0; i < y.count(); ++i) {
      y.f32()[i] = static_cast<float>(unary_value(kind, args, x.f32()[i]));
    }
  }

  void unary_backward(Unary kind, UnaryArgs args, CTensor x, CTensor y, CTensor dy,
                      Grad dx) override {
    if (!dx) return;
    std::vector<double> result;
    for (int64_t i = 0; i < dy.count(); ++i) {
      const double slope =
          x ? unary_slope(kind, args, x.f32()[i]) : unary_slope_from_y(kind, args, y.f32()[i]);
      result.push_back(dy.f32()[i] * slope);
    }
    write(result, dx);
  }

  void launch(std::string_view kernel, const void* functor, int64_t n) override {
    launch_kernel(kernel, functor, n);
  }
  void reduce(std::string_view kernel, const void* functor, int64_t rows, int64_t cols) override {
    reduce_kernel(kernel, functor, rows, cols);
  }

  void convert(CTensor src, Tensor dst) override {
    const std::vector<int64_t> from = offsets(src.desc), to = offsets(dst.desc);
    std::vector<double> values;
    for (const int64_t i : from) values.push_back(load(src, i));
    for (size_t i = 0; i < to.size(); ++i) store(values[i], dst, to[i]);
  }

  void fill(float value, Tensor dst) override {
    for (int64_t i = 0; i < dst.count(); ++i) store(value, dst, i);
  }

  void add(CTensor src, Tensor dst) override {
    for (int64_t i = 0; i < dst.count(); ++i) store(load(dst, i) + load(src, i), dst, i);
  }

  void update(const UpdateRule& rule, CTensor grad, Tensors state, Tensor master,
              Tensor weight) override {
    reference::update(rule, step_, grad, state, master, weight);
  }

  const StepScalars* step_scalars() const override { return &step_; }
  StepScalars step() const override { return step_; }
  void set_step(const StepScalars& step) override { step_ = step; }

  void upload(const void* host, Tensor dst) override {
    std::memcpy(dst.data, host, dst.desc.bytes());
  }
  void download(CTensor src, void* host) override { std::memcpy(host, src.data, src.desc.bytes()); }
  Buffer allocate(size_t bytes, Memory) override {
    const size_t whole = (bytes + kAlignment) / kAlignment * kAlignment;
    void* data = std::aligned_alloc(kAlignment, whole);
    require(data != nullptr, "no memory for ", bytes, " bytes");
    std::memset(data, 0, whole);
    return {data, std::free};
  }
  void synchronize() override {}

  Fault* fault() override { return &fault_; }
  std::optional<Fault> take_fault() override {
    if (!fault_.set) return std::nullopt;
    const Fault taken = fault_;
    fault_ = {};
    return taken;
  }

 private:
  StepScalars step_;
  Fault fault_;
};

}  // namespace
}  // namespace reference

std::shared_ptr<Ops> make_reference_ops() { return std::make_shared<reference::ReferenceOps>(); }

}  // namespace crema
