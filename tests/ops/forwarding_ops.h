// An Ops that hands every call on to another one, lets it record or not, and counts what it
// replays and starts.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "ops/ops.h"

namespace crema {

class ForwardingOps : public Ops {
 public:
  ForwardingOps(std::shared_ptr<Ops> to, bool records) : to_(std::move(to)), records_(records) {}
  int replays() const { return replays_; }
  /// Starts of a functor so far.
  int starts_of(std::string_view kernel) const {
    const auto found = starts_.find(std::string(kernel));
    return found == starts_.end() ? 0 : found->second;
  }

  std::string describe() const override { return to_->describe(); }
  std::optional<std::string> why_not(const ConvDesc& d) const override { return to_->why_not(d); }
  std::optional<std::string> why_not_precision(DType type) const override {
    return to_->why_not_precision(type);
  }
  bool computes(Family family, DType type) const override { return to_->computes(family, type); }
  Layout preferred(const ConvDesc& d) const override { return to_->preferred(d); }
  std::unique_ptr<ConvPlan> plan(const ConvDesc& d) override { return to_->plan(d); }
  std::unique_ptr<LinearPlan> plan(const LinearDesc& d) override { return to_->plan(d); }
  std::unique_ptr<PoolPlan> plan(const PoolDesc& d) override { return to_->plan(d); }
  std::unique_ptr<NormPlan> plan(const NormDesc& d) override { return to_->plan(d); }
  std::unique_ptr<LrnPlan> plan(const LrnDesc& d) override { return to_->plan(d); }
  std::unique_ptr<SoftmaxPlan> plan(const SoftmaxDesc& d) override { return to_->plan(d); }
  void gemm(bool ta, bool tb, float alpha, CTensor a, CTensor b, Tensor c, Write how) override {
    to_->gemm(ta, tb, alpha, a, b, c, how);
  }
  void unary(Unary kind, UnaryArgs args, CTensor x, Tensor y) override {
    to_->unary(kind, args, x, y);
  }
  void unary_backward(Unary kind, UnaryArgs args, CTensor x, CTensor y, CTensor dy,
                      Grad dx) override {
    to_->unary_backward(kind, args, x, y, dy, dx);
  }
  void launch(std::string_view kernel, const void* functor, int64_t n) override {
    ++starts_[std::string(kernel)];
    to_->launch(kernel, functor, n);
  }
  void reduce(std::string_view kernel, const void* functor, int64_t rows, int64_t cols) override {
    to_->reduce(kernel, functor, rows, cols);
  }
  void convert(CTensor src, Tensor dst) override { to_->convert(src, dst); }
  void fill(float value, Tensor dst) override { to_->fill(value, dst); }
  void add(CTensor src, Tensor dst) override { to_->add(src, dst); }
  void update(const UpdateRule& rule, CTensor grad, Tensors state, Tensor master,
              Tensor weight) override {
    to_->update(rule, grad, state, master, weight);
  }
  const StepScalars* step_scalars() const override { return to_->step_scalars(); }
  StepScalars step() const override { return to_->step(); }
  void set_step(const StepScalars& step) override { to_->set_step(step); }
  void upload(const void* host, Tensor dst) override { to_->upload(host, dst); }
  void download(CTensor src, void* host) override { to_->download(src, host); }
  Buffer allocate(size_t bytes, Memory kind) override { return to_->allocate(bytes, kind); }
  bool shares_host_memory() const override { return to_->shares_host_memory(); }
  void synchronize() override { to_->synchronize(); }
  std::unique_ptr<SideQueue> side_queue() override { return to_->side_queue(); }
  Fault* fault() override { return to_->fault(); }
  std::optional<Fault> take_fault() override { return to_->take_fault(); }
  bool can_record() const override { return records_ && to_->can_record(); }
  void begin_recording() override { to_->begin_recording(); }
  Recording end_recording() override { return to_->end_recording(); }
  void replay(const Recording& recording) override {
    ++replays_;
    to_->replay(recording);
  }

 private:
  std::shared_ptr<Ops> to_;
  bool records_;
  int replays_ = 0;
  std::map<std::string, int> starts_;
};

}  // namespace crema
