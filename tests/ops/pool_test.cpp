// Pooling: Caffe's output sizes, its divisor, its first maximum.
#include <algorithm>
#include <cmath>

#include "ops/ops_harness.h"

namespace crema {
namespace {

using Sizes = std::vector<int64_t>;

enum class Content : uint8_t { distinct, equal, few_values, some_nan, positive, negative };

struct PoolRow {
  const char* name = "";
  Shape x{};
  Sizes kernel{};
  Sizes stride{}, pad{};
  bool floor = false;
  bool mask = false, train = true;
  Content content = Content::distinct;
};

/// Caffe's size: rounded up, less a window that would begin behind the input and its first padding.
int64_t pooled_size(int64_t in, int64_t kernel, int64_t stride, int64_t pad, bool floor) {
  const int64_t room = in + 2 * pad - kernel;
  const int64_t out = (floor ? room / stride : (room + stride - 1) / stride) + 1;
  return (out - 1) * stride >= in + pad ? out - 1 : out;
}

PoolDesc desc_of(const PoolRow& row, PoolKind kind, Layout layout) {
  const int axes = row.x.axes() - 2;
  PoolDesc desc;
  desc.kind = kind;
  desc.x = {.shape = row.x, .layout = layout};
  desc.y = {.shape = {row.x[0], row.x[1]}, .layout = layout};
  desc.kernel = dims_of(row.kernel, axes, 1);
  desc.stride = dims_of(row.stride, axes, 1);
  desc.pad = dims_of(row.pad, axes, 0);
  for (int axis = 0; axis < axes; ++axis) {
    desc.y.shape.push_back(pooled_size(row.x[axis + 2], desc.kernel[axis], desc.stride[axis],
                                       desc.pad[axis], row.floor));
  }
  desc.mask = row.mask && kind == PoolKind::max;
  desc.train = row.train;
  desc.seed = 99;
  return desc;
}

std::vector<float> content_of(const PoolRow& row) {
  const int64_t count = row.x.count();
  std::vector<float> values = distinct_values(count, 1);
  switch (row.content) {
    case Content::distinct:
      break;
    case Content::equal:
      std::fill(values.begin(), values.end(), 0.5f);
      break;
    case Content::few_values:
      for (float& v : values) v = std::round(2 * v);
      break;
    case Content::some_nan:
      values[0] = values[values.size() / 2] = values.back() = NAN;
      break;
    case Content::positive:
      for (float& v : values) v += 2;
      break;
    case Content::negative:
      for (float& v : values) v -= 2;
      break;
  }
  return values;
}

void play(const PoolRow& row, PoolKind kind, Side& side, Layout layout, Results& results) {
  const PoolDesc d = desc_of(row, kind, layout);
  const auto plan = side.ops().plan(d);
  const CTensor x = side.input(d.x, content_of(row));
  const CTensor dy = side.input(d.y, random_values(d.y.count(), 2));
  for (int arena = 0; arena < 2; ++arena) {
    plan->bind(side.workspace(plan->needs()));
    for (int pass = 0; pass < 2; ++pass) {
      const Tensor y = side.output(d.y);
      const Tensor mask = d.mask ? side.output(d.y) : Tensor{};
      plan->forward(x, y, mask);
      results.put("y", side.read(y));
      if (d.mask) results.put("mask", side.read(mask));
      if (!d.train) continue;
      both_writes(side, results, "dx", d.x, [&](const Grad& dx) { plan->backward(x, y, dy, dx); });
    }
  }
}

const std::vector<PoolRow> kRows = {
    {.name = "k2_s2", .x = {2, 8, 8, 8}, .kernel = {2}, .stride = {2}},
    {.name = "k3_s2_overhang", .x = {2, 16, 8, 8}, .kernel = {3}, .stride = {2}},
    {.name = "k3_s2_floor", .x = {2, 16, 8, 8}, .kernel = {3}, .stride = {2}, .floor = true},
    {.name = "k3_s2_cifar", .x = {2, 32, 32, 32}, .kernel = {3}, .stride = {2}},
    {.name = "k3_s1_p1", .x = {2, 16, 7, 7}, .kernel = {3}, .pad = {1}},
    {.name = "k3_s2_p1", .x = {2, 16, 9, 9}, .kernel = {3}, .stride = {2}, .pad = {1}},
    {.name = "k3_s2_p1_overhang", .x = {2, 16, 8, 8}, .kernel = {3}, .stride = {2}, .pad = {1}},
    {.name = "k3_s3_p2_overhang", .x = {2, 5, 6, 6}, .kernel = {3}, .stride = {3}, .pad = {2}},
    {.name = "k5_s3_p2_overhang", .x = {1, 3, 10, 10}, .kernel = {5}, .stride = {3}, .pad = {2}},
    {.name = "k5_s4_p4_overhang", .x = {1, 3, 7, 7}, .kernel = {5}, .stride = {4}, .pad = {4}},
    {.name = "k1", .x = {2, 4, 5, 5}, .kernel = {1}},
    {.name = "k1_s2_dropped_window", .x = {1, 3, 6, 6}, .kernel = {1}, .stride = {2}},
    {.name = "k2_s3_gaps", .x = {1, 3, 10, 10}, .kernel = {2}, .stride = {3}},
    {.name = "k2_s1", .x = {2, 7, 5, 5}, .kernel = {2}},
    {.name = "k4_s1_p1", .x = {1, 7, 6, 6}, .kernel = {4}, .pad = {1}},
    {.name = "asymmetric", .x = {2, 6, 9, 14}, .kernel = {2, 5}, .stride = {1, 3}, .pad = {1, 2}},
    {.name = "asymmetric_pad_w_only",
     .x = {2, 6, 9, 8},
     .kernel = {3, 3},
     .stride = {2, 2},
     .pad = {0, 1}},
    {.name = "global", .x = {3, 10, 7, 7}, .kernel = {7}},
    {.name = "global_h_w", .x = {2, 10, 3, 8}, .kernel = {3, 8}},
    {.name = "one_place", .x = {2, 5, 1, 1}, .kernel = {1}},
    {.name = "one_channel", .x = {2, 1, 8, 8}, .kernel = {3}, .stride = {2}},
    {.name = "three_channels", .x = {2, 3, 8, 8}, .kernel = {3}, .stride = {2}, .pad = {1}},
    {.name = "odd_channels", .x = {2, 13, 8, 8}, .kernel = {3}, .stride = {2}},
    {.name = "lenet_channels", .x = {2, 20, 8, 8}, .kernel = {2}, .stride = {2}},
    {.name = "channels_over_vectors", .x = {2, 37, 7, 7}, .kernel = {3}, .stride = {2}},
    {.name = "gaps_behind_the_last_window", .x = {1, 9, 8, 8}, .kernel = {2}, .stride = {5}},
    {.name = "many_channels", .x = {1, 200, 6, 6}, .kernel = {3}, .stride = {2}},
    // Channels that fill vectors of every instruction set, and some more.
    {.name = "vectors_k3_s1_p1", .x = {2, 36, 7, 7}, .kernel = {3}, .pad = {1}},
    {.name = "vectors_k5_s2_p2", .x = {2, 68, 9, 9}, .kernel = {5}, .stride = {2}, .pad = {2}},
    {.name = "vectors_gaps", .x = {1, 20, 10, 10}, .kernel = {2}, .stride = {3}},
    {.name = "vectors_asymmetric",
     .x = {2, 52, 9, 14},
     .kernel = {2, 5},
     .stride = {1, 3},
     .pad = {1, 2}},
    {.name = "vectors_three_axes", .x = {2, 20, 6, 7, 8}, .kernel = {3}, .stride = {2}, .pad = {1}},
    {.name = "vectors_wide_window", .x = {1, 20, 18, 18}, .kernel = {17}},
    {.name = "vectors_many_rows_read_one",
     .x = {1, 20, 9, 9, 2},
     .kernel = {9, 9, 1},
     .pad = {4, 4, 0}},
    {.name = "vectors_pieces_of_a_row", .x = {1, 600, 3, 30}, .kernel = {3}, .stride = {2}},
    {.name = "vectors_equal_maxima",
     .x = {2, 24, 9, 9},
     .kernel = {3},
     .stride = {2},
     .content = Content::few_values},
    {.name = "vectors_some_nan",
     .x = {1, 20, 8, 8},
     .kernel = {3},
     .stride = {2},
     .mask = true,
     .content = Content::some_nan},
    {.name = "vectors_mask", .x = {2, 36, 8, 8}, .kernel = {3}, .pad = {1}, .mask = true},
    {.name = "wide_row", .x = {1, 4, 1, 30}, .kernel = {1, 4}, .stride = {1, 3}},
    {.name = "one_axis", .x = {2, 6, 15}, .kernel = {3}, .stride = {2}, .pad = {1}},
    {.name = "one_axis_overhang", .x = {2, 6, 10}, .kernel = {3}, .stride = {2}},
    {.name = "three_axes", .x = {1, 4, 6, 6, 6}, .kernel = {2}, .stride = {2}},
    {.name = "three_axes_overhang", .x = {2, 3, 6, 7, 8}, .kernel = {3}, .stride = {2}, .pad = {1}},
    {.name = "three_axes_all_differ",
     .x = {1, 3, 5, 6, 7},
     .kernel = {1, 2, 3},
     .stride = {1, 2, 2},
     .pad = {0, 1, 1}},
    {.name = "test_only", .x = {2, 8, 8, 8}, .kernel = {3}, .stride = {2}, .train = false},
    {.name = "all_equal",
     .x = {2, 8, 6, 6},
     .kernel = {3},
     .stride = {2},
     .pad = {1},
     .content = Content::equal},
    {.name = "equal_maxima",
     .x = {2, 8, 9, 9},
     .kernel = {3},
     .stride = {2},
     .content = Content::few_values},
    {.name = "equal_maxima_overlapping",
     .x = {2, 8, 9, 9},
     .kernel = {3},
     .pad = {1},
     .content = Content::few_values},
    {.name = "negative",
     .x = {2, 8, 9, 9},
     .kernel = {3},
     .stride = {2},
     .pad = {1},
     .content = Content::negative},
    {.name = "mask", .x = {2, 8, 8, 8}, .kernel = {2}, .stride = {2}, .mask = true},
    {.name = "mask_overhang_pad",
     .x = {2, 5, 8, 8},
     .kernel = {3},
     .stride = {2},
     .pad = {1},
     .mask = true},
    {.name = "mask_equal_maxima",
     .x = {2, 5, 8, 8},
     .kernel = {3},
     .stride = {2},
     .mask = true,
     .content = Content::few_values},
    {.name = "mask_asymmetric",
     .x = {2, 5, 5, 9},
     .kernel = {2, 3},
     .stride = {1, 2},
     .mask = true},
    {.name = "mask_one_axis", .x = {2, 5, 11}, .kernel = {3}, .stride = {2}, .mask = true},
    {.name = "mask_test_only",
     .x = {2, 5, 8, 8},
     .kernel = {3},
     .stride = {2},
     .mask = true,
     .train = false},
    {.name = "some_nan",
     .x = {1, 4, 8, 8},
     .kernel = {3},
     .stride = {2},
     .content = Content::some_nan},
    {.name = "some_nan_mask",
     .x = {1, 4, 8, 8},
     .kernel = {3},
     .stride = {2},
     .mask = true,
     .content = Content::some_nan},
};

std::vector<Row> rows(PoolKind kind) {
  std::vector<Row> out;
  for (const PoolRow& row : kRows) {
    if (row.mask && kind != PoolKind::max) continue;
    out.push_back({.name = row.name, .play = [=](Side& side, Layout layout, Results& results) {
                     play(row, kind, side, layout, results);
                   }});
  }
  return out;
}

/// Training draws the same places on every device; else the expectation is given.
std::vector<Row> stochastic_rows() {
  std::vector<Row> out;
  for (PoolRow row : kRows) {
    if (row.mask || !row.train || row.content != Content::distinct) continue;
    row.content = Content::positive;
    for (const bool train : {false, true}) {
      row.train = train;
      out.push_back({.name = str(row.name, train ? "_train" : ""),
                     .play = [=](Side& side, Layout layout, Results& results) {
                       play(row, PoolKind::stochastic, side, layout, results);
                     }});
    }
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(MaxPool, OpsRows, testing::ValuesIn(rows(PoolKind::max)), row_name);
INSTANTIATE_TEST_SUITE_P(AveragePool, OpsRows, testing::ValuesIn(rows(PoolKind::average)),
                         row_name);
INSTANTIATE_TEST_SUITE_P(StochasticPool, OpsRows, testing::ValuesIn(stochastic_rows()), row_name);

// ---- Stochastic pooling in training ----

class StochasticPool : public testing::TestWithParam<Layout> {
 protected:
  /// 1 x 1000 planes of 2 x 2, each 0, 1, 2, 5, pooled to one place.
  StochasticPool() : side_(cpu_ops()) {
    PoolRow row{.name = "planes", .x = {1, 1000, 2, 2}, .kernel = {2}};
    desc_ = desc_of(row, PoolKind::stochastic, GetParam());
    desc_.seed = 5;
    std::vector<float> values;
    for (int i = 0; i < 1000; ++i) values.insert(values.end(), {0, 1, 2, 5});
    x_ = side_.input(desc_.x, values);
    plan_ = side_.ops().plan(desc_);
    plan_->bind(side_.workspace(plan_->needs()));
  }
  ~StochasticPool() override { side_.ops().set_step({}); }

  std::vector<float> forward(uint64_t count) {
    side_.ops().set_step({.forward_count = count});
    const Tensor y = side_.output(desc_.y);
    plan_->forward(x_, y, {});
    return side_.read(y);
  }

  Side side_;
  PoolDesc desc_;
  CTensor x_;
  std::unique_ptr<PoolPlan> plan_;
};

TEST_P(StochasticPool, DrawsInProportionToTheValues) {
  std::map<float, int> seen;
  for (uint64_t count = 0; count < 10; ++count) {
    for (const float v : forward(count)) ++seen[v];
  }
  EXPECT_EQ(seen.count(0), 0u);
  EXPECT_NEAR(seen[1], 1250, 150);
  EXPECT_NEAR(seen[2], 2500, 200);
  EXPECT_NEAR(seen[5], 6250, 200);
}

TEST_P(StochasticPool, IsAFunctionOfTheForwardCount) {
  const std::vector<float> first = forward(3);
  EXPECT_NE(forward(4), first);
  EXPECT_EQ(forward(3), first);
}

TEST_P(StochasticPool, GradientGoesWhereTheValueCameFrom) {
  const std::vector<float> y = forward(7);
  const CTensor y_tensor = side_.input(desc_.y, y);
  const CTensor dy = side_.input(desc_.y, std::vector<float>(1000, 3));
  const Grad dx = make_grad(side_, desc_.x, Write::overwrite);
  plan_->backward(x_, y_tensor, dy, dx);
  const std::vector<float> x = side_.read(x_), gradient = side_.read(dx.t);
  for (size_t i = 0; i < gradient.size(); ++i) {
    ASSERT_EQ(gradient[i], x[i] == y[i / 4] ? 3 : 0) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, StochasticPool, testing::Values(Layout::nchw, Layout::nhwc),
                         [](const auto& info) {
                           return info.param == Layout::nchw ? "nchw" : "nhwc";
                         });

}  // namespace
}  // namespace crema
