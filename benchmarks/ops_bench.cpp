// Single operations: the GEMM and copy rates that everything is measured against, then the layers'
// shapes of the models. Rates are per second of the main thread's CPU time; "share" is of the GEMM
// rate measured first.
#include <benchmark/benchmark.h>

#include <functional>
#include <memory>
#include <string>

#include "ops/ops.h"

namespace crema {
namespace {

/// One Ops and tensors on it.
class Bench {
 public:
  Bench() : ops(make_ops({})) {}
  Tensor tensor(const TensorDesc& desc) {
    buffers_.push_back(ops->allocate(desc.bytes(), Memory::device));
    Tensor t{buffers_.back().get(), desc};
    if (desc.dtype == DType::f32) {
      // No period that a branch predictor could learn.
      RandomStream random(static_cast<uint64_t>(buffers_.size()));
      for (int64_t i = 0; i < desc.count(); ++i) {
        t.f32()[i] = uniform01(random.next()) - 0.5f;
      }
    }
    return t;
  }
  Workspace workspace(const Needs& needs) {
    const auto bytes = [this](size_t n) {
      return tensor({Shape{static_cast<int64_t>(n)}, DType::u8, Layout::nchw});
    };
    return {bytes(needs.scratch), bytes(needs.saved), bytes(needs.state), bytes(needs.packed)};
  }
  std::shared_ptr<Ops> ops;

 private:
  std::vector<Buffer> buffers_;
};

double gemm_rate = 0;  // FLOP/s, of the first benchmark that ran

void run_gemm(benchmark::State& state) {
  const int64_t n = state.range(0);
  Bench bench;
  const TensorDesc square{Shape{n, n}, DType::f32, Layout::nchw};
  const Tensor a = bench.tensor(square), b = bench.tensor(square), c = bench.tensor(square);
  for (auto _ : state) bench.ops->gemm(false, false, 1, a, b, c, Write::overwrite);
  const double flop = 2.0 * static_cast<double>(n) * static_cast<double>(n) *
                      static_cast<double>(n) * static_cast<double>(state.iterations());
  state.counters["FLOP"] = {flop, benchmark::Counter::kIsRate};
}

void run_copy(benchmark::State& state) {
  Bench bench;
  const Tensor x = bench.tensor({Shape{state.range(0)}, DType::f32, Layout::nchw});
  const Tensor y = bench.tensor(x.desc);
  for (auto _ : state) bench.ops->convert(x, y);
  state.SetBytesProcessed(state.iterations() * 2 * static_cast<int64_t>(x.desc.bytes()));
}

void run_transpose(benchmark::State& state) {
  Bench bench;
  TensorDesc desc{Shape{32, state.range(0), 56, 56}, DType::f32, Layout::nchw};
  const Tensor x = bench.tensor(desc);
  desc.layout = Layout::nhwc;
  const Tensor y = bench.tensor(desc);
  for (auto _ : state) {
    bench.ops->convert(x, y);
    bench.ops->convert(y, x);
  }
  state.SetBytesProcessed(state.iterations() * 4 * static_cast<int64_t>(desc.bytes()));
}

struct ConvCase {
  const char* name;
  int64_t n, c, size, k, kernel, stride, pad;
  int groups;
};

constexpr ConvCase kConvCases[] = {
    {"lenet1", 64, 1, 28, 20, 5, 1, 0, 1},           {"lenet2", 64, 20, 12, 50, 5, 1, 0, 1},
    {"cifar1", 100, 3, 32, 32, 5, 1, 2, 1},          {"cifar2", 100, 32, 16, 32, 5, 1, 2, 1},
    {"cifar3", 100, 32, 8, 64, 5, 1, 2, 1},          {"caffenet1", 16, 3, 227, 96, 11, 4, 0, 1},
    {"caffenet2", 16, 96, 27, 256, 5, 1, 2, 2},      {"caffenet3", 16, 256, 13, 384, 3, 1, 1, 1},
    {"caffenet4", 16, 384, 13, 384, 3, 1, 1, 2},     {"caffenet5", 16, 384, 13, 256, 3, 1, 1, 2},
    {"resnet50_1", 4, 3, 224, 64, 7, 2, 3, 1},       {"resnet50_1x1", 4, 256, 56, 64, 1, 1, 0, 1},
    {"googlenet2", 8, 64, 56, 192, 3, 1, 1, 1},      {"vgg1_2", 1, 64, 224, 64, 3, 1, 1, 1},
    {"squeezenet1", 4, 3, 227, 64, 3, 2, 0, 1},      {"squeezenet_e3", 16, 16, 56, 64, 3, 1, 1, 1},
    {"mobilenet_dw", 8, 128, 56, 128, 3, 1, 1, 128},
};

enum class Direction { forward, data, params };

SpatialDims both(int64_t v) { return {.axes = 2, .v = {v, v}}; }

void run_conv(benchmark::State& state, const ConvCase& c, Direction direction, Layout layout) {
  const int64_t out = (c.size + 2 * c.pad - c.kernel) / c.stride + 1;
  Bench bench;
  const ConvDesc d{.x = {Shape{c.n, c.c, c.size, c.size}, DType::f32, layout},
                   .w = {Shape{c.k, c.c / c.groups, c.kernel, c.kernel}},
                   .y = {Shape{c.n, c.k, out, out}, DType::f32, layout},
                   .pad = both(c.pad),
                   .stride = both(c.stride),
                   .dilation = both(1),
                   .groups = c.groups,
                   .bias = true,
                   .act = {}};
  const std::unique_ptr<ConvPlan> plan = bench.ops->plan(d);
  plan->bind(bench.workspace(plan->needs()));
  const Tensor x = bench.tensor(d.x), w = bench.tensor(d.w), y = bench.tensor(d.y);
  const Tensor dw = bench.tensor(d.w), b = bench.tensor({Shape{c.k}, DType::f32, Layout::nchw});
  plan->weights_changed(w);
  for (auto _ : state) {
    switch (direction) {
      case Direction::forward:
        plan->forward(x, w, b, {}, y);
        break;
      case Direction::data:
        plan->backward_data(y, w, {x, Write::overwrite});
        break;
      case Direction::params:
        plan->backward_params(x, y, {dw, Write::overwrite}, {b, Write::overwrite});
        break;
    }
  }
  const double flop = 2.0 * static_cast<double>(d.y.count() * d.w.shape.count(1));
  const double total = flop * static_cast<double>(state.iterations());
  state.counters["FLOP"] = {total, benchmark::Counter::kIsRate};
  if (gemm_rate > 0) state.counters["share"] = {total / gemm_rate, benchmark::Counter::kIsRate};
}

void run_linear(benchmark::State& state, int64_t m, int64_t k, int64_t n, Direction direction) {
  Bench bench;
  const LinearDesc d{.m = m, .k = k, .n = n, .bias = true, .act = {}};
  const std::unique_ptr<LinearPlan> plan = bench.ops->plan(d);
  plan->bind(bench.workspace(plan->needs()));
  const auto matrix = [&](int64_t rows, int64_t cols) {
    return bench.tensor({Shape{rows, cols}, DType::f32, Layout::nchw});
  };
  const Tensor x = matrix(m, k), w = matrix(n, k), y = matrix(m, n), dw = matrix(n, k);
  const Tensor b = bench.tensor({Shape{n}, DType::f32, Layout::nchw});
  plan->weights_changed(w);
  for (auto _ : state) {
    switch (direction) {
      case Direction::forward:
        plan->forward(x, w, b, y);
        break;
      case Direction::data:
        plan->backward_data(y, w, {x, Write::overwrite});
        break;
      case Direction::params:
        plan->backward_params(x, y, {dw, Write::overwrite}, {b, Write::overwrite});
        break;
    }
  }
  const double total = 2.0 * static_cast<double>(m * k * n * state.iterations());
  state.counters["FLOP"] = {total, benchmark::Counter::kIsRate};
  if (gemm_rate > 0) state.counters["share"] = {total / gemm_rate, benchmark::Counter::kIsRate};
}

struct PoolCase {
  const char* name;
  int64_t n, c, size, out, kernel, stride;
};

constexpr PoolCase kPoolCases[] = {{"caffenet1", 16, 96, 55, 27, 3, 2},
                                   {"cifar1", 100, 32, 32, 16, 3, 2},
                                   {"lenet1", 64, 20, 24, 12, 2, 2},
                                   {"googlenet3", 8, 192, 28, 26, 3, 1}};

void run_pool(benchmark::State& state, const PoolCase& c, PoolKind kind, Layout layout) {
  Bench bench;
  const PoolDesc d{.x = {Shape{c.n, c.c, c.size, c.size}, DType::f32, layout},
                   .y = {Shape{c.n, c.c, c.out, c.out}, DType::f32, layout},
                   .kind = kind,
                   .kernel = both(c.kernel),
                   .stride = both(c.stride),
                   .pad = both(0)};
  const std::unique_ptr<PoolPlan> plan = bench.ops->plan(d);
  plan->bind(bench.workspace(plan->needs()));
  const Tensor x = bench.tensor(d.x), y = bench.tensor(d.y);
  for (auto _ : state) {
    plan->forward(x, y, {});
    plan->backward(x, y, y, {x, Write::overwrite});
  }
  state.SetBytesProcessed(state.iterations() * 2 * static_cast<int64_t>(d.x.bytes() + d.y.bytes()));
}

void run_lrn(benchmark::State& state, Layout layout, bool within) {
  Bench bench;
  const LrnDesc d{.x = {Shape{16, 96, 27, 27}, DType::f32, layout},
                  .size = within ? 3 : 5,
                  .alpha = 1e-4f,
                  .within = within};
  const std::unique_ptr<LrnPlan> plan = bench.ops->plan(d);
  plan->bind(bench.workspace(plan->needs()));
  const Tensor x = bench.tensor(d.x), y = bench.tensor(d.x), dx = bench.tensor(d.x);
  for (auto _ : state) {
    plan->forward(x, y);
    plan->backward(x, y, y, {dx, Write::overwrite});
  }
  state.SetBytesProcessed(state.iterations() * 5 * static_cast<int64_t>(d.x.bytes()));
}

void run_norm(benchmark::State& state, Layout layout) {
  Bench bench;
  const NormDesc d{
      .x = {Shape{8, 64, 56, 56}, DType::f32, layout}, .affine = true, .act = {ActKind::relu}};
  const std::unique_ptr<NormPlan> plan = bench.ops->plan(d);
  plan->bind(bench.workspace(plan->needs()));
  const Tensor x = bench.tensor(d.x), y = bench.tensor(d.x), dx = bench.tensor(d.x);
  std::array<Tensor, 6> v;
  for (Tensor& t : v) t = bench.tensor({Shape{64}, DType::f32, Layout::nchw});
  for (auto _ : state) {
    plan->forward(x, v[0], v[1], v[2], v[3], y);
    plan->backward(x, y, v[0], v[1], v[2], y, {dx, Write::overwrite}, {v[4], Write::overwrite},
                   {v[5], Write::overwrite});
  }
  state.SetBytesProcessed(state.iterations() * 10 * static_cast<int64_t>(d.x.bytes()));
}

void run_unary(benchmark::State& state, Unary kind) {
  Bench bench;
  const Tensor x = bench.tensor({Shape{1 << 20}, DType::f32, Layout::nchw});
  const Tensor y = bench.tensor(x.desc);
  for (auto _ : state) bench.ops->unary(kind, {1, 0, 1}, x, y);
  state.SetItemsProcessed(state.iterations() * x.count());
}

void run_update(benchmark::State& state, Rule rule) {
  Bench bench;
  const TensorDesc desc{Shape{8 << 20}, DType::f32, Layout::nchw};
  const Tensor grad = bench.tensor(desc), w = bench.tensor(desc);
  const std::array<Tensor, 2> history{bench.tensor(desc), bench.tensor(desc)};
  bench.ops->fill(0.5f, history[1]);
  bench.ops->set_step({.rate = 1e-6f});
  for (auto _ : state) {
    bench.ops->update({.rule = rule, .momentum = 0.9f}, grad,
                      {history.data(), static_cast<size_t>(history_count(rule))}, w, {});
  }
  const int64_t streams = 3 + 2 * history_count(rule);
  state.SetBytesProcessed(state.iterations() * streams * static_cast<int64_t>(desc.bytes()));
}

/// The rate that the shares refer to.
void measure_gemm_rate() {
  constexpr int64_t kSize = 1024, kRuns = 3;
  Bench bench;
  const TensorDesc square{Shape{kSize, kSize}, DType::f32, Layout::nchw};
  const Tensor a = bench.tensor(square), b = bench.tensor(square), c = bench.tensor(square);
  for (int64_t i = 0; i < kRuns; ++i) {
    const clock_t start = clock();
    bench.ops->gemm(false, false, 1, a, b, c, Write::overwrite);
    const double seconds = static_cast<double>(clock() - start) / CLOCKS_PER_SEC;
    gemm_rate = std::max(gemm_rate, 2.0 * kSize * kSize * kSize / seconds);
  }
}

struct LinearCase {
  const char* name;
  int64_t m, k, n;
};

constexpr LinearCase kLinearCases[] = {{"lenet1", 64, 800, 500},
                                       {"cifar1", 100, 1024, 64},
                                       {"caffenet6", 16, 9216, 4096},
                                       {"caffenet8", 16, 4096, 1000},
                                       {"vgg7", 4, 4096, 4096}};
constexpr std::pair<const char*, Direction> kDirections[] = {
    {"/forward", Direction::forward}, {"/data", Direction::data}, {"/params", Direction::params}};

void register_all() {
  for (const int64_t n : {512, 2048}) benchmark::RegisterBenchmark("gemm", run_gemm)->Arg(n);
  benchmark::RegisterBenchmark("copy", run_copy)->Arg(16 << 20);
  for (const int64_t c : {3, 64}) benchmark::RegisterBenchmark("transpose", run_transpose)->Arg(c);
  for (const LinearCase& c : kLinearCases) {
    for (const auto& [word, direction] : kDirections) {
      benchmark::RegisterBenchmark((std::string("linear/") + c.name + word).c_str(), run_linear,
                                   c.m, c.k, c.n, direction);
    }
  }
  for (const Layout layout : {Layout::nhwc, Layout::nchw}) {
    const std::string suffix = layout == Layout::nhwc ? "/nhwc" : "/nchw";
    for (const ConvCase& c : kConvCases) {
      const std::string name = std::string("conv/") + c.name;
      for (const auto& [word, direction] : kDirections) {
        benchmark::RegisterBenchmark((name + word + suffix).c_str(), run_conv, c, direction,
                                     layout);
      }
    }
    for (const PoolCase& c : kPoolCases) {
      const std::string name = c.name + suffix;
      benchmark::RegisterBenchmark(("pool/max/" + name).c_str(), run_pool, c, PoolKind::max,
                                   layout);
      benchmark::RegisterBenchmark(("pool/average/" + name).c_str(), run_pool, c, PoolKind::average,
                                   layout);
    }
    benchmark::RegisterBenchmark(("lrn/across" + suffix).c_str(), run_lrn, layout, false);
    benchmark::RegisterBenchmark(("lrn/within" + suffix).c_str(), run_lrn, layout, true);
    benchmark::RegisterBenchmark(("norm" + suffix).c_str(), run_norm, layout);
  }
  benchmark::RegisterBenchmark("relu", run_unary, Unary::relu);
  benchmark::RegisterBenchmark("exp", run_unary, Unary::exp);
  benchmark::RegisterBenchmark("tanh", run_unary, Unary::tanh);
  benchmark::RegisterBenchmark("update/sgd", run_update, Rule::sgd);
  benchmark::RegisterBenchmark("update/adam", run_update, Rule::adam);
}

}  // namespace
}  // namespace crema

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  crema::measure_gemm_rate();
  crema::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
