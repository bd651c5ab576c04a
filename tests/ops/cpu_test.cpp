// What only the CPU backend promises: no large allocation once set up, instruction sets that agree,
// results that do not depend on the number of threads.
#include <gtest/gtest.h>
#include <malloc.h>
#include <omp.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/philox.h"
#include "ops/cpu/cpu_ops.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CREMA_COUNTS_ALLOCATIONS
namespace {
std::atomic<size_t> largest_allocation{0};

void note(size_t bytes) {
  size_t seen = largest_allocation;
  while (seen < bytes && !largest_allocation.compare_exchange_weak(seen, bytes)) {
  }
}
}  // namespace

extern "C" {
void* __libc_malloc(size_t bytes);                      // NOLINT
void* __libc_memalign(size_t alignment, size_t bytes);  // NOLINT

void* malloc(size_t bytes) {
  note(bytes);
  return __libc_malloc(bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  note(bytes);
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}
}
#endif

namespace crema {
namespace {

/// Tensors that hold drawn numbers, on one Ops.
class Bench {
 public:
  explicit Bench(const Isa& isa = best_isa()) : ops(isa) {}

  Tensor tensor(const TensorDesc& desc) {
    buffers_.push_back(ops.allocate(desc.bytes(), Memory::device));
    Tensor t{buffers_.back().get(), desc};
    RandomStream random(buffers_.size());
    for (int64_t i = 0; desc.dtype == DType::f32 && i < desc.count(); ++i) {
      t.f32()[i] = static_cast<float>(random.uniform()) - 0.5f;
    }
    outputs.push_back(t);
    return t;
  }
  Workspace workspace(const Needs& needs) {
    const auto bytes = [this](size_t n) {
      buffers_.push_back(ops.allocate(n, Memory::device));
      return Tensor{buffers_.back().get(), {Shape{static_cast<int64_t>(n)}, DType::u8}};
    };
    return {bytes(needs.scratch), bytes(needs.saved), bytes(needs.state), bytes(needs.packed)};
  }

  CpuOps ops;
  std::vector<Tensor> outputs;

 private:
  std::vector<Buffer> buffers_;
};

using Step = std::function<void()>;

TensorDesc picture(int64_t n, int64_t c, int64_t size, Layout layout) {
  return {Shape{n, c, size, size}, DType::f32, layout};
}

SpatialDims both(int64_t v) { return {.axes = 2, .v = {v, v}}; }

Step conv_step(Bench& bench, Layout layout, int64_t channels, int groups = 1) {
  const int64_t outputs = groups == 1 ? 24 : channels;
  ConvDesc d{.x = picture(4, channels, 14, layout),
             .w = {Shape{outputs, channels / groups, 3, 3}},
             .y = picture(4, outputs, 14, layout),
             .pad = both(1),
             .stride = both(1),
             .dilation = both(1),
             .groups = groups,
             .bias = true,
             .act = {ActKind::relu}};
  std::shared_ptr<ConvPlan> plan = bench.ops.plan(d);
  plan->bind(bench.workspace(plan->needs()));
  const Tensor x = bench.tensor(d.x), w = bench.tensor(d.w), y = bench.tensor(d.y);
  const Tensor dx = bench.tensor(d.x), dw = bench.tensor(d.w), dy = bench.tensor(d.y);
  const Tensor b = bench.tensor({Shape{outputs}}), db = bench.tensor({Shape{outputs}});
  return [=] {
    plan->weights_changed(w);
    plan->forward(x, w, b, {}, y);
    plan->backward_data(dy, w, {dx, Write::accumulate});
    plan->backward_params(x, dy, {dw, Write::accumulate}, {db, Write::overwrite});
  };
}

Step linear_step(Bench& bench, int64_t m) {
  LinearDesc d{.m = m, .k = 301, .n = 130, .bias = true, .act = {ActKind::relu}};
  std::shared_ptr<LinearPlan> plan = bench.ops.plan(d);
  plan->bind(bench.workspace(plan->needs()));
  const Tensor x = bench.tensor({Shape{m, d.k}}), w = bench.tensor({Shape{d.n, d.k}});
  const Tensor y = bench.tensor({Shape{m, d.n}}), dy = bench.tensor({Shape{m, d.n}});
  const Tensor dx = bench.tensor({Shape{m, d.k}}), dw = bench.tensor({Shape{d.n, d.k}});
  const Tensor b = bench.tensor({Shape{d.n}}), db = bench.tensor({Shape{d.n}});
  return [=] {
    plan->forward(x, w, b, y);
    plan->backward_data(dy, w, {dx, Write::overwrite});
    plan->backward_params(x, dy, {dw, Write::accumulate}, {db, Write::overwrite});
  };
}

Step pool_step(Bench& bench, PoolKind kind, Layout layout) {
  PoolDesc d{.x = picture(3, 20, 13, layout),
             .y = picture(3, 20, 6, layout),
             .kind = kind,
             .kernel = both(3),
             .stride = both(2),
             .pad = both(0)};
  std::shared_ptr<PoolPlan> plan = bench.ops.plan(d);
  plan->bind(bench.workspace(plan->needs()));
  const Tensor x = bench.tensor(d.x), y = bench.tensor(d.y);
  const Tensor dx = bench.tensor(d.x), dy = bench.tensor(d.y);
  return [=] {
    plan->forward(x, y, {});
    plan->backward(x, y, dy, {dx, Write::overwrite});
  };
}

Step norm_step(Bench& bench, Layout layout) {
  NormDesc d{.x = picture(8, 20, 13, layout), .affine = true, .act = {ActKind::relu}};
  std::shared_ptr<NormPlan> plan = bench.ops.plan(d);
  plan->bind(bench.workspace(plan->needs()));
  const Tensor x = bench.tensor(d.x), y = bench.tensor(d.x);
  const Tensor dx = bench.tensor(d.x), dy = bench.tensor(d.x);
  std::array<Tensor, 6> v;
  for (Tensor& t : v) t = bench.tensor({Shape{20}});
  return [=] {
    plan->forward(x, v[0], v[1], v[2], v[3], y);
    plan->backward(x, y, v[0], v[1], v[2], dy, {dx, Write::overwrite}, {v[4], Write::overwrite},
                   {v[5], Write::overwrite});
  };
}

Step lrn_step(Bench& bench, Layout layout, bool within) {
  LrnDesc d{.x = picture(3, 20, 13, layout), .size = 5, .alpha = 0.5f, .within = within};
  std::shared_ptr<LrnPlan> plan = bench.ops.plan(d);
  plan->bind(bench.workspace(plan->needs()));
  const Tensor x = bench.tensor(d.x), y = bench.tensor(d.x);
  const Tensor dx = bench.tensor(d.x), dy = bench.tensor(d.x);
  return [=] {
    plan->forward(x, y);
    plan->backward(x, y, dy, {dx, Write::overwrite});
  };
}

Step softmax_step(Bench& bench, Layout layout) {
  SoftmaxDesc d{.x = picture(3, 20, 13, layout)};
  std::shared_ptr<SoftmaxPlan> plan = bench.ops.plan(d);
  plan->bind(bench.workspace(plan->needs()));
  const Tensor x = bench.tensor(d.x), y = bench.tensor(d.x);
  const Tensor dx = bench.tensor(d.x), dy = bench.tensor(d.x);
  return [=] {
    plan->forward(x, y);
    plan->backward(y, dy, {dx, Write::overwrite});
  };
}

Step plain_step(Bench& bench) {
  const Tensor x = bench.tensor(picture(4, 20, 13, Layout::nchw));
  const Tensor y = bench.tensor(x.desc), z = bench.tensor(picture(4, 20, 13, Layout::nhwc));
  const Tensor history = bench.tensor(x.desc), second = bench.tensor(x.desc);
  const Tensor a = bench.tensor({Shape{300, 200}}), b = bench.tensor({Shape{200, 150}});
  const Tensor c = bench.tensor({Shape{300, 150}});
  bench.ops.fill(0.5f, second);  // a mean of squares
  Ops& ops = bench.ops;
  return [=, &ops] {
    for (const Unary kind : {Unary::relu, Unary::elu, Unary::sigmoid, Unary::tanh, Unary::swish,
                             Unary::bnll, Unary::exp, Unary::clip}) {
      const UnaryArgs args{0.5f, 0.75f, 1};
      ops.unary(kind, args, x, y);
      ops.unary_backward(kind, args, x, y, x, {y, Write::accumulate});
    }
    ops.convert(y, z);
    ops.add(x, y);
    ops.gemm(false, false, 1, a, b, c, Write::overwrite);
    ops.set_step({.rate = 0.01f});
    const std::array<Tensor, 2> state{history, second};
    ops.update({.rule = Rule::adam, .momentum = 0.9f}, x, state, y, {});
  };
}

struct Row {
  const char* name;
  std::function<Step(Bench&)> make;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> out;
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      const bool is_nhwc = layout == Layout::nhwc;
      const auto add = [&](const char* nchw, const char* nhwc, std::function<Step(Bench&)> make) {
        out.push_back({is_nhwc ? nhwc : nchw, std::move(make)});
      };
      add("conv_nchw", "conv_nhwc", [=](Bench& b) { return conv_step(b, layout, 16); });
      add("conv_3_nchw", "conv_3_nhwc", [=](Bench& b) { return conv_step(b, layout, 3); });
      add("conv_64_nchw", "conv_64_nhwc", [=](Bench& b) { return conv_step(b, layout, 64); });
      add("depthwise_nchw", "depthwise_nhwc",
          [=](Bench& b) { return conv_step(b, layout, 48, 48); });
      add("conv_1_nchw", "conv_1_nhwc", [=](Bench& b) { return conv_step(b, layout, 1); });
      add("max_nchw", "max_nhwc", [=](Bench& b) { return pool_step(b, PoolKind::max, layout); });
      add("average_nchw", "average_nhwc",
          [=](Bench& b) { return pool_step(b, PoolKind::average, layout); });
      add("norm_nchw", "norm_nhwc", [=](Bench& b) { return norm_step(b, layout); });
      add("across_nchw", "across_nhwc", [=](Bench& b) { return lrn_step(b, layout, false); });
      add("within_nchw", "within_nhwc", [=](Bench& b) { return lrn_step(b, layout, true); });
      add("softmax_nchw", "softmax_nhwc", [=](Bench& b) { return softmax_step(b, layout); });
    }
    out.push_back({"linear", [](Bench& b) { return linear_step(b, 33); }});
    out.push_back({"linear_1", [](Bench& b) { return linear_step(b, 1); }});
    out.push_back({"plain", [](Bench& b) { return plain_step(b); }});
    return out;
  }();
  return all;
}

class CpuRows : public testing::TestWithParam<Row> {};

#if defined(CREMA_COUNTS_ALLOCATIONS)
TEST_P(CpuRows, AllocateNothingLarge) {
  Bench bench;
  const Step step = GetParam().make(bench);
  step();
  step();
  largest_allocation = 0;
  step();
  EXPECT_LE(largest_allocation.load(), 4096u);
}
#endif

/// Everything a row's tensors hold after one step.
std::vector<float> outcome(const Row& row, const Isa& isa, int threads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  Bench bench(isa);
  row.make(bench)();
  omp_set_num_threads(before);
  std::vector<float> all;
  for (const Tensor& t : bench.outputs) all.insert(all.end(), t.f32(), t.f32() + t.count());
  return all;
}

void expect_near(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], 1e-5f * (1 + std::abs(expected[i]))) << "element " << i;
  }
}

TEST_P(CpuRows, AgreeForAnyNumberOfThreads) {
  const std::vector<float> one = outcome(GetParam(), best_isa(), 1);
  expect_near(outcome(GetParam(), best_isa(), 2), one);
  expect_near(outcome(GetParam(), best_isa(), 3), one);
}

TEST_P(CpuRows, AreTheSameBitsInEveryRun) {
  EXPECT_EQ(outcome(GetParam(), best_isa(), 2), outcome(GetParam(), best_isa(), 2));
}

TEST_P(CpuRows, AgreeOnEveryInstructionSet) {
  const std::vector<float> baseline = outcome(GetParam(), *isa_named("baseline"), 1);
  for (const char* name : {"avx2", "avx512"}) {
    if (const Isa* isa = isa_named(name)) expect_near(outcome(GetParam(), *isa, 1), baseline);
  }
}

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

INSTANTIATE_TEST_SUITE_P(Cpu, CpuRows, testing::ValuesIn(rows()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Isa, TablesListTheSameKernels) {
  const Isa& baseline = *isa_named("baseline");
  std::set<std::string> names;
  for (int i = 0; i < baseline.kernel_count; ++i) names.insert(baseline.kernels[i].name);
  EXPECT_EQ(names.size(), static_cast<size_t>(baseline.kernel_count));
  EXPECT_EQ(names.count("DropoutMask"), 1u);
  EXPECT_EQ(best_isa().kernel_count, baseline.kernel_count);
}

TEST(Isa, UnknownNamesAreNone) { EXPECT_EQ(isa_named("sse9"), nullptr); }

TEST(Isa, AWishThatCannotBeMetIsAnError) {
  const char* before = std::getenv("CREMA_ISA");
  const std::string kept = before ? before : "";
  ::setenv("CREMA_ISA", "sse9", 1);
  std::string message;
  try {
    best_isa();
  } catch (const Error& error) {
    message = error.what();
  }
  if (before) {
    ::setenv("CREMA_ISA", kept.c_str(), 1);
  } else {
    ::unsetenv("CREMA_ISA");
  }
  EXPECT_EQ(message,
            "CREMA_ISA: this processor and this build have no sse9; baseline, avx2 and avx512 are "
            "known");
}

TEST(CpuConv, MoreThanThreeAxesAreComputed) {
  const SpatialDims ones{.axes = 4, .v = {1, 1, 1, 1}}, none{.axes = 4};
  Bench bench;
  const ConvDesc d{.x = {Shape{1, 1, 3, 3, 3, 3}},
                   .w = {Shape{1, 1, 2, 2, 2, 2}},
                   .y = {Shape{1, 1, 2, 2, 2, 2}},
                   .pad = none,
                   .stride = ones,
                   .dilation = ones,
                   .act = {}};
  const auto plan = bench.ops.plan(d);
  const Tensor x = bench.tensor(d.x), w = bench.tensor(d.w), y = bench.tensor(d.y);
  bench.ops.fill(1, x);
  bench.ops.fill(2, w);
  plan->forward(x, w, {}, {}, y);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(y.f32()[i], 32.0f);
}

}  // namespace
}  // namespace crema
