// Functors: launch and reduce on every device, equal bits for any number of threads, and Divider.
#include <omp.h>

#include <cstring>

#include "ops/kernels/eltwise.h"
#include "ops/kernels/reduction.h"
#include "ops/ops_harness.h"

namespace crema {
namespace {

// ---- run() ----

void play_launch(int64_t n, Side& side, Results& results) {
  const int64_t count = n + 5;  // what lies behind n must stay as it was
  const TensorDesc desc{.shape = {count}};
  const CTensor a = side.input(desc, random_values(count, 1));
  const CTensor b = side.input(desc, random_values(count, 2));
  const Tensor y = side.inout(desc, random_values(count, 3));
  const WeightedSum f{
      {.a = a.f32(), .b = b.f32(), .y = y.f32(), .ca = 2, .cb = -0.5f, .slope = 0, .relu = false}};
  run(side.ops(), f, n);
  results.put("y", side.read(y));
}

std::vector<Row> launch_rows() {
  std::vector<Row> out;
  for (const int64_t n : {0, 1, 2, 7, 64, 1000, 1000003}) {
    out.push_back(
        {.name = str("n_", n),
         .play = [n](Side& side, Layout, Results& results) { play_launch(n, side, results); },
         .both_layouts = false});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Launch, OpsRows, testing::ValuesIn(launch_rows()), row_name);

// ---- run_rows() ----

struct ReduceRow {
  int64_t rows = 1, cols = 1;
  ReduceKind kind = ReduceKind::sum;
};

std::vector<float> reduce(const ReduceRow& row, Side& side) {
  const CTensor x =
      side.input({.shape = {row.rows, row.cols}}, random_values(row.rows * row.cols, 1));
  const Tensor y = side.output({.shape = {row.rows}});
  const ReductionRows f{.x = x.f32(), .y = y.f32(), .cols = row.cols, .coeff = 1, .kind = row.kind};
  run_rows(side.ops(), f, row.rows, row.cols);
  return side.read(y);
}

const std::vector<ReduceRow> kReduceRows = {
    {1, 1},       {1, 2},      {1, 7},       {1, 1000},  {1, 1000000},
    {1000000, 1}, {3, 5},      {1000, 1000}, {17, 4099}, {2, 65536},
    {2, 65537},   {100000, 3}, {4, 1000000}, {0, 5},     {5, 0},
};

std::string size_name(const ReduceRow& row) { return str(row.rows, "_x_", row.cols); }

std::vector<Row> reduce_rows() {
  std::vector<Row> out;
  for (const ReduceKind kind : {ReduceKind::sum, ReduceKind::asum, ReduceKind::sumsq}) {
    const char* prefix = kind == ReduceKind::sum    ? "sum_"
                         : kind == ReduceKind::asum ? "asum_"
                                                    : "sumsq_";
    for (ReduceRow row : kReduceRows) {
      if (kind != ReduceKind::sum && row.rows * row.cols > 100000) continue;
      row.kind = kind;
      out.push_back({.name = prefix + size_name(row),
                     .play =
                         [row](Side& side, Layout, Results& results) {
                           results.put("y", reduce(row, side));
                           results.put("y", reduce(row, side));
                         },
                     .both_layouts = false});
    }
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Reduce, OpsRows, testing::ValuesIn(reduce_rows()), row_name);

/// The number of threads that OpenMP takes, put back at the end.
class Threads {
 public:
  explicit Threads(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

class ReduceThreads : public testing::TestWithParam<ReduceRow> {};

TEST_P(ReduceThreads, GiveTheSameBits) {
  std::vector<float> first;
  for (const int count : {1, 2, 3, 8}) {
    const Threads threads(count);
    Side side(cpu_ops());
    const std::vector<float> y = reduce(GetParam(), side);
    if (first.empty()) first = y;
    ASSERT_EQ(first.size(), y.size());
    if (y.empty()) continue;
    EXPECT_EQ(0, std::memcmp(first.data(), y.data(), y.size() * sizeof(float))) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ReduceThreads, testing::ValuesIn(kReduceRows),
                         [](const auto& info) { return size_name(info.param); });

// ---- Divider ----

void check_divider(uint32_t divisor) {
  constexpr uint32_t kLast = 0x7FFFFFFF;
  const Divider by(divisor);
  const uint32_t last_multiple = kLast / divisor * divisor;
  const auto check = [&](uint64_t i) {
    if (i > kLast) return;
    const auto value = static_cast<uint32_t>(i);
    ASSERT_EQ(by.quotient(value), value / divisor) << value << " / " << divisor;
    ASSERT_EQ(by.remainder(value), value % divisor) << value << " / " << divisor;
  };
  for (const uint64_t base : {uint64_t{0}, uint64_t{divisor}, 2 * uint64_t{divisor},
                              uint64_t{last_multiple}, uint64_t{kLast} / 2 / divisor * divisor}) {
    for (uint64_t step = 0; step <= 2; ++step) {
      check(base + step);
      if (base >= step) check(base - step);
    }
  }
  check(kLast);
  check(kLast - 1);
}

TEST(Divider, IsRightAtTheBoundariesOfEverySmallDivisor) {
  for (uint32_t divisor = 1; divisor <= 70000; ++divisor) check_divider(divisor);
}

TEST(Divider, IsRightAroundPowersOfTwo) {
  for (int shift = 1; shift <= 31; ++shift) {
    const uint64_t power = uint64_t{1} << shift;
    for (const uint64_t divisor : {power - 1, power, power + 1}) {
      if (divisor < (uint64_t{1} << 31)) check_divider(static_cast<uint32_t>(divisor));
    }
  }
}

TEST(Divider, IsRightForDrawnNumbers) {
  RandomStream random(3);
  for (int draw = 0; draw < 200000; ++draw) {
    const uint32_t divisor = std::max(1u, random.next() >> (1 + random.below(31)));
    const uint32_t value = random.next() >> 1;
    const Divider by(divisor);
    ASSERT_EQ(by.quotient(value), value / divisor) << value << " / " << divisor;
  }
}

TEST(Divider, IsRightForEveryNumberOfAFewDivisors) {
  for (const uint32_t divisor : {1u, 3u, 7u, 12u, 255u}) {
    const Divider by(divisor);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < 4000000; ++i) wrong += by.quotient(i) != i / divisor;
    for (uint32_t i = 0x7FFFFFFF - 4000000; i < 0x7FFFFFFF; ++i)
      wrong += by.quotient(i) != i / divisor;
    EXPECT_EQ(wrong, 0u) << divisor;
  }
}

TEST(KernelName, IsTheBareName) {
  EXPECT_EQ(kernel_name<WeightedSum>(), "WeightedSum");
  EXPECT_EQ(kernel_name<ReductionRows>(), "ReductionRows");
}

}  // namespace
}  // namespace crema
