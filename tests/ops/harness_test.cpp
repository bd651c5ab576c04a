// The harness finds what it is there to find: each sabotage of an Ops fails its row.
#include <gtest/gtest-spi.h>

#include <cstring>

#include "base/error.h"
#include "ops/forwarding_ops.h"
#include "ops/ops_harness.h"
#include "reference/reference.h"

namespace crema {
namespace {

enum class Sabotage : uint8_t {
  none,
  writes_behind,
  writes_before,
  writes_input,
  leaves_last,
  slightly_wrong,
  other_bits_each_time,
  never_accumulates,
  always_accumulates,
  ruins_in_place,
  keeps_first_weights,
  keeps_first_arena,
  throws,
};

/// Inner product that keeps its weights in the workspace, as a packing plan does.
class PackingPlan : public LinearPlan {
 public:
  PackingPlan(std::unique_ptr<LinearPlan> plan, Sabotage sabotage, size_t bytes)
      : plan_(std::move(plan)), sabotage_(sabotage), bytes_(bytes) {}

  Needs needs() const override { return {.packed = bytes_}; }
  void bind(const Workspace& workspace) override {
    if (sabotage_ == Sabotage::keeps_first_arena && packed_) return;
    packed_ = workspace.packed;
    packed_once_ = false;
  }
  void weights_changed(CTensor w) override {
    if (sabotage_ == Sabotage::keeps_first_weights && changes_++ > 1) return;
    if (sabotage_ == Sabotage::keeps_first_arena && packed_once_) return;
    std::memcpy(packed_.data, w.data, bytes_);
    packed_once_ = true;
  }
  void forward(CTensor x, CTensor w, CTensor b, Tensor y) override {
    plan_->weights_changed({packed_.data, w.desc});
    plan_->forward(x, w, b, y);
  }
  void backward_data(CTensor dy, CTensor w, Grad dx) override {
    plan_->weights_changed({packed_.data, w.desc});
    plan_->backward_data(dy, w, dx);
  }
  void backward_params(CTensor x, CTensor dy, Grad dw, Grad db) override {
    plan_->backward_params(x, dy, dw, db);
  }

 private:
  std::unique_ptr<LinearPlan> plan_;
  Sabotage sabotage_;
  size_t bytes_;
  Tensor packed_;
  bool packed_once_ = false;
  int changes_ = 0;
};

/// The oracle with one thing wrong.
class SabotagedOps : public ForwardingOps {
 public:
  explicit SabotagedOps(Sabotage sabotage)
      : ForwardingOps(make_reference_ops(), false), sabotage_(sabotage) {}

  std::string describe() const override { return "sabotaged"; }
  using ForwardingOps::plan;
  std::unique_ptr<LinearPlan> plan(const LinearDesc& d) override {
    return std::make_unique<PackingPlan>(ForwardingOps::plan(d), sabotage_,
                                         static_cast<size_t>(d.k * d.n) * sizeof(float));
  }
  void unary(Unary kind, UnaryArgs args, CTensor x, Tensor y) override {
    if (sabotage_ == Sabotage::throws) fail("sabotaged");
    const float last = y.f32()[y.count() - 1];
    ForwardingOps::unary(kind, args, x, y);
    spoil(x, y, last);
  }
  void unary_backward(Unary kind, UnaryArgs args, CTensor x, CTensor y, CTensor dy,
                      Grad dx) override {
    if (sabotage_ == Sabotage::never_accumulates) dx.how = Write::overwrite;
    if (sabotage_ == Sabotage::always_accumulates) dx.how = Write::accumulate;
    if (sabotage_ == Sabotage::ruins_in_place && dx.t.data == dy.data) fill(0, dx.t);
    ForwardingOps::unary_backward(kind, args, x, y, dy, dx);
  }

 private:
  void spoil(CTensor x, Tensor y, float last) {
    float* values = y.f32();
    const int64_t count = y.count();
    if (sabotage_ == Sabotage::writes_behind) values[count] = 0;
    if (sabotage_ == Sabotage::writes_before) values[-1] = 0;
    if (sabotage_ == Sabotage::writes_input) *const_cast<float*>(x.f32()) += 1;
    if (sabotage_ == Sabotage::leaves_last) values[count - 1] = last;
    if (sabotage_ == Sabotage::slightly_wrong) values[0] += 1e-3f;
    if (sabotage_ == Sabotage::other_bits_each_time)
      values[0] += 1e-7f * static_cast<float>(++calls_);
  }

  Sabotage sabotage_;
  int calls_ = 0;
};

void play_unary(Side& side, Layout layout, Results& results) {
  const TensorDesc desc{.shape = {2, 3, 4, 5}, .layout = layout};
  const std::vector<float> values = random_values(120, 1), gradient = random_values(120, 2);
  const CTensor x = side.input(desc, values), dy = side.input(desc, gradient);
  for (int pass = 0; pass < 2; ++pass) {
    const Tensor y = side.output(desc);
    side.ops().unary(Unary::tanh, {}, x, y);
    results.put("y", side.read(y));
    both_writes(side, results, "dx", desc,
                [&](const Grad& dx) { side.ops().unary_backward(Unary::tanh, {}, x, y, dy, dx); });
    const Tensor in_place = side.inout(desc, gradient);
    side.ops().unary_backward(Unary::tanh, {}, x, y, in_place, {in_place, Write::overwrite});
    results.put("dx", side.read(in_place));
  }
}

void play_linear(Side& side, Layout, Results& results) {
  const LinearDesc d{.m = 2, .k = 3, .n = 4, .act = {}};
  const auto plan = side.ops().plan(d);
  const CTensor x = side.input({.shape = {2, 3}}, random_values(6, 1));
  const CTensor w = side.input({.shape = {4, 3}}, random_values(12, 2));
  const auto forward = [&](const char* name) {
    const Tensor y = side.output({.shape = {2, 4}});
    plan->forward(x, w, {}, y);
    results.put(name, side.read(y));
  };
  for (int arena = 0; arena < 2; ++arena) {
    plan->bind(side.workspace(plan->needs()));
    plan->weights_changed(w);
    forward("y");
  }
  side.set(w, random_values(12, 3));
  plan->weights_changed(w);
  forward("y of new weights");
}

/// How many failures the rows have on an Ops with that wrong.
int failures_of(Sabotage sabotage) {
  testing::TestPartResultArray results;
  {
    testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    const auto ops = std::make_shared<SabotagedOps>(sabotage);
    check_row({.name = "unary", .play = play_unary}, ops);
    check_row({.name = "linear", .play = play_linear}, ops);
  }
  int failures = 0;
  for (int i = 0; i < results.size(); ++i) failures += results.GetTestPartResult(i).failed();
  return failures;
}

TEST(OpsHarness, PassesWhatIsRight) { EXPECT_EQ(failures_of(Sabotage::none), 0); }

class OpsHarnessFinds : public testing::TestWithParam<std::pair<const char*, Sabotage>> {};

TEST_P(OpsHarnessFinds, It) { EXPECT_GT(failures_of(GetParam().second), 0); }

INSTANTIATE_TEST_SUITE_P(
    Sabotage, OpsHarnessFinds,
    testing::Values(std::pair("writes_behind", Sabotage::writes_behind),
                    std::pair("writes_before", Sabotage::writes_before),
                    std::pair("writes_input", Sabotage::writes_input),
                    std::pair("leaves_last", Sabotage::leaves_last),
                    std::pair("slightly_wrong", Sabotage::slightly_wrong),
                    std::pair("other_bits_each_time", Sabotage::other_bits_each_time),
                    std::pair("never_accumulates", Sabotage::never_accumulates),
                    std::pair("always_accumulates", Sabotage::always_accumulates),
                    std::pair("ruins_in_place", Sabotage::ruins_in_place),
                    std::pair("keeps_first_weights", Sabotage::keeps_first_weights),
                    std::pair("keeps_first_arena", Sabotage::keeps_first_arena),
                    std::pair("throws", Sabotage::throws)),
    [](const auto& info) { return std::string(info.param.first); });

}  // namespace
}  // namespace crema
