// Batch normalisation, local response normalisation and softmax.
#include <algorithm>
#include <cmath>

#include "ops/ops_harness.h"

namespace crema {
namespace {

// ---- Batch normalisation ----

struct NormRow {
  const char* name = "";
  Shape x{};
  bool global_stats = false, affine = false, train = true;
  Act act{};
  float eps = 1e-5f;
  float mean = 0, spread = 1;  // of the values
};

struct NormTensors {
  NormTensors(Side& side, const NormDesc& d, const NormRow& row)
      : per_channel{.shape = {d.x.shape[1]}},
        x(side.input(d.x,
                     random_values(d.x.count(), 1, row.mean - row.spread, row.mean + row.spread))),
        dy(side.input(d.x, random_values(d.x.count(), 2))) {
    const int64_t c = d.x.shape[1];
    if (d.affine) {
      gamma = side.input(per_channel, random_values(c, 3, -1, 2));
      beta = side.input(per_channel, random_values(c, 4));
    }
    if (d.global_stats) {
      mean = side.inout(per_channel, random_values(c, 5, row.mean - 1, row.mean + 1));
      variance = side.inout(per_channel, random_values(c, 6, 0.1f, 2));
    } else {
      mean = side.output(per_channel);
      variance = side.output(per_channel);
    }
  }
  TensorDesc per_channel;
  CTensor x, dy, gamma, beta;
  Tensor mean, variance;
};

void play_backward(Side& side, const NormDesc& d, NormPlan& plan, const NormTensors& t, CTensor y,
                   Results& results) {
  const CTensor seen = d.act.kind == ActKind::none ? CTensor{} : y;
  for (const Write how : {Write::overwrite, Write::accumulate}) {
    const char* suffix = how == Write::overwrite ? "" : " added";
    const Grad dx = make_grad(side, d.x, how);
    const Grad dgamma = d.affine ? make_grad(side, t.per_channel, how) : Grad{};
    const Grad dbeta = d.affine ? make_grad(side, t.per_channel, how) : Grad{};
    plan.backward(t.x, seen, t.mean, t.variance, t.gamma, t.dy, dx, dgamma, dbeta);
    results.put(str("dx", suffix), side.read(dx.t));
    if (!d.affine) continue;
    results.put(str("dgamma", suffix), side.read(dgamma.t));
    results.put(str("dbeta", suffix), side.read(dbeta.t));
    const Grad only_dgamma = make_grad(side, t.per_channel, how);
    const Grad only_dbeta = make_grad(side, t.per_channel, how);
    plan.backward(t.x, seen, t.mean, t.variance, t.gamma, t.dy, {}, only_dgamma, only_dbeta);
    results.put(str("dgamma without dx", suffix), side.read(only_dgamma.t));
    results.put(str("dbeta without dx", suffix), side.read(only_dbeta.t));
    const Grad only_dx = make_grad(side, d.x, how);
    plan.backward(t.x, seen, t.mean, t.variance, t.gamma, t.dy, only_dx, {}, {});
    results.put(str("dx alone", suffix), side.read(only_dx.t));
  }
}

void play(const NormRow& row, Side& side, Layout layout, Results& results) {
  const NormDesc d{.x = {.shape = row.x, .layout = layout},
                   .eps = row.eps,
                   .global_stats = row.global_stats,
                   .affine = row.affine,
                   .train = row.train,
                   .act = row.act};
  const auto plan = side.ops().plan(d);
  const NormTensors t(side, d, row);
  for (int arena = 0; arena < 2; ++arena) {
    plan->bind(side.workspace(plan->needs()));
    for (int pass = 0; pass < 2; ++pass) {
      const Tensor y = side.output(d.x);
      plan->forward(t.x, t.mean, t.variance, t.gamma, t.beta, y);
      results.put("y", side.read(y));
      results.put("mean", side.read(t.mean));
      results.put("variance", side.read(t.variance));
      if (d.train) play_backward(side, d, *plan, t, y, results);
    }
  }
}

const std::vector<NormRow> kNormRows = {
    {.name = "train", .x = {4, 16, 6, 6}},
    {.name = "train_affine", .x = {4, 16, 6, 6}, .affine = true},
    {.name = "train_affine_relu", .x = {4, 16, 6, 6}, .affine = true, .act = {ActKind::relu}},
    {.name = "train_relu", .x = {4, 16, 6, 6}, .act = {ActKind::relu}},
    {.name = "train_affine_leaky",
     .x = {4, 16, 6, 6},
     .affine = true,
     .act = {ActKind::relu, 0.1f}},
    {.name = "train_affine_relu6", .x = {4, 16, 6, 6}, .affine = true, .act = {ActKind::relu6}},
    {.name = "train_affine_elu", .x = {4, 16, 6, 6}, .affine = true, .act = {ActKind::elu, 0.5f}},
    {.name = "global", .x = {4, 16, 6, 6}, .global_stats = true},
    {.name = "global_affine", .x = {4, 16, 6, 6}, .global_stats = true, .affine = true},
    {.name = "global_affine_relu",
     .x = {4, 16, 6, 6},
     .global_stats = true,
     .affine = true,
     .act = {ActKind::relu}},
    {.name = "global_affine_elu",
     .x = {4, 5, 6, 6},
     .global_stats = true,
     .affine = true,
     .act = {ActKind::elu, 1}},
    {.name = "global_test_only",
     .x = {4, 16, 6, 6},
     .global_stats = true,
     .affine = true,
     .train = false},
    {.name = "test_only_relu",
     .x = {4, 16, 6, 6},
     .global_stats = true,
     .train = false,
     .act = {ActKind::relu}},
    {.name = "batch_stats_test_only", .x = {4, 16, 6, 6}, .affine = true, .train = false},
    {.name = "odd_channels", .x = {3, 7, 5, 5}, .affine = true},
    {.name = "odd_channels_relu", .x = {3, 13, 5, 5}, .affine = true, .act = {ActKind::relu}},
    {.name = "one_channel", .x = {3, 1, 5, 5}, .affine = true},
    {.name = "three_channels", .x = {2, 3, 9, 9}},
    {.name = "many_channels", .x = {2, 200, 3, 3}, .affine = true},
    {.name = "blocks_of_rows_of_vectors", .x = {2, 176, 12, 12}, .affine = true},
    {.name = "blocks_of_rows_of_vectors_and_a_rest", .x = {3, 100, 9, 9}},
    {.name = "blocks_of_rows_of_two_vectors", .x = {3, 32, 9, 9}, .act = {ActKind::relu}},
    {.name = "two_axes", .x = {16, 24}, .affine = true},
    {.name = "two_axes_odd", .x = {9, 5}},
    {.name = "two_axes_global", .x = {9, 5}, .global_stats = true, .affine = true},
    {.name = "two_axes_relu", .x = {9, 5}, .affine = true, .act = {ActKind::relu}},
    {.name = "three_axes", .x = {4, 6, 10}, .affine = true},
    {.name = "five_axes", .x = {2, 4, 3, 4, 5}, .affine = true},
    {.name = "six_axes", .x = {2, 3, 2, 3, 2, 2}, .affine = true},
    {.name = "one_value_per_channel", .x = {1, 8, 1, 1}, .affine = true},
    {.name = "two_values_per_channel", .x = {2, 8, 1, 1}, .affine = true},
    {.name = "one_sample", .x = {1, 8, 7, 7}, .affine = true},
    {.name = "large_eps", .x = {4, 8, 4, 4}, .affine = true, .eps = 0.5f},
    {.name = "mean_far_from_zero", .x = {4, 8, 8, 8}, .affine = true, .mean = 30},
    {.name = "constant", .x = {4, 8, 6, 6}, .affine = true, .mean = 0.1f, .spread = 0},
    {.name = "tiny_spread", .x = {4, 8, 6, 6}, .affine = true, .spread = 1e-3f},
    {.name = "long", .x = {8, 4, 40, 40}, .affine = true},
};

std::vector<Row> norm_rows() {
  std::vector<Row> out;
  for (const NormRow& row : kNormRows) {
    out.push_back({.name = row.name,
                   .play = [row](Side& side, Layout layout,
                                 Results& results) { play(row, side, layout, results); },
                   .tolerance = {.relative = 1e-4f, .floor = 1}});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Norm, OpsRows, testing::ValuesIn(norm_rows()), row_name);

// ---- Local response normalisation ----

struct LrnRow {
  const char* name = "";
  Shape x{};
  int size = 5;
  float alpha = 1, beta = 0.75f, k = 1;
  bool within = false, train = true;
  float spread = 1;
  std::vector<float> values{};
};

void play(const LrnRow& row, Side& side, Layout layout, Results& results) {
  const LrnDesc d{.x = {.shape = row.x, .layout = layout},
                  .size = row.size,
                  .alpha = row.alpha,
                  .beta = row.beta,
                  .k = row.k,
                  .within = row.within,
                  .train = row.train};
  const auto plan = side.ops().plan(d);
  const CTensor x =
      side.input(d.x, row.values.empty() ? random_values(d.x.count(), 1, -row.spread, row.spread)
                                         : row.values);
  const CTensor dy = side.input(d.x, random_values(d.x.count(), 2));
  for (int arena = 0; arena < 2; ++arena) {
    plan->bind(side.workspace(plan->needs()));
    for (int pass = 0; pass < 2; ++pass) {
      const Tensor y = side.output(d.x);
      plan->forward(x, y);
      results.put("y", side.read(y));
      if (!d.train) continue;
      both_writes(side, results, "dx", d.x, [&](const Grad& dx) { plan->backward(x, y, dy, dx); });
    }
  }
}

const std::vector<LrnRow> kLrnRows = {
    {.name = "across", .x = {2, 16, 6, 6}},
    {.name = "across_alexnet", .x = {2, 32, 9, 9}, .alpha = 1e-4f, .spread = 100},
    {.name = "across_3", .x = {2, 16, 6, 6}, .size = 3, .alpha = 0.5f},
    {.name = "across_1", .x = {2, 16, 6, 6}, .size = 1},
    {.name = "across_7", .x = {2, 16, 6, 6}, .size = 7},
    {.name = "across_beta_half", .x = {2, 16, 6, 6}, .beta = 0.5f},
    {.name = "across_beta_one", .x = {2, 16, 6, 6}, .beta = 1},
    {.name = "across_beta_odd", .x = {2, 16, 6, 6}, .size = 3, .beta = 0.9f},
    {.name = "across_k_2", .x = {2, 16, 6, 6}, .k = 2},
    {.name = "across_odd_channels", .x = {2, 13, 5, 5}},
    {.name = "across_three_channels", .x = {2, 3, 5, 5}},
    {.name = "across_one_channel", .x = {2, 1, 5, 5}},
    {.name = "across_size_over_channels", .x = {2, 3, 4, 4}, .size = 61},
    {.name = "across_size_over_channels_8", .x = {1, 8, 4, 4}, .size = 15},
    {.name = "across_many_channels", .x = {1, 192, 4, 4}, .alpha = 1e-4f},
    {.name = "across_two_axes", .x = {3, 10}},
    {.name = "across_three_axes", .x = {2, 8, 9}},
    {.name = "across_five_axes", .x = {1, 8, 3, 3, 3}},
    {.name = "across_test_only", .x = {2, 16, 6, 6}, .train = false},
    {.name = "across_huge_value",
     .x = {1, 8, 1, 1},
     .alpha = 1e-4f,
     .values = {1e6f, 0, 0, 0, 0, 0, 0, 0}},
    {.name = "across_huge_value_small_k",
     .x = {1, 8, 1, 1},
     .alpha = 1e-4f,
     .k = 1e-3f,
     .values = {1e6f, 1, 0, 0, 0, 0, 0, 0}},
    {.name = "within_3", .x = {2, 16, 6, 6}, .size = 3, .within = true},
    {.name = "within_5", .x = {2, 16, 7, 7}, .size = 5, .within = true},
    {.name = "within_cifar",
     .x = {2, 32, 8, 8},
     .size = 3,
     .alpha = 5e-5f,
     .within = true,
     .spread = 100},
    {.name = "within_odd_channels", .x = {2, 7, 5, 6}, .size = 3, .within = true},
    {.name = "within_one_channel", .x = {2, 1, 5, 6}, .size = 3, .within = true},
    {.name = "within_beta_half", .x = {2, 4, 5, 5}, .size = 3, .beta = 0.5f, .within = true},
    {.name = "within_ignores_k", .x = {2, 4, 5, 5}, .size = 3, .k = 7, .within = true},
    {.name = "within_1", .x = {2, 4, 5, 5}, .size = 1, .within = true},
    {.name = "within_size_over_picture", .x = {2, 4, 3, 2}, .size = 7, .within = true},
    {.name = "within_test_only", .x = {2, 16, 6, 6}, .size = 3, .within = true, .train = false},
};

std::vector<Row> lrn_rows() {
  std::vector<Row> out;
  for (const LrnRow& row : kLrnRows) {
    out.push_back({.name = row.name, .play = [row](Side& side, Layout layout, Results& results) {
                     play(row, side, layout, results);
                   }});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Lrn, OpsRows, testing::ValuesIn(lrn_rows()), row_name);

// ---- Softmax ----

struct SoftmaxRow {
  const char* name = "";
  Shape x{};
  int axis = 1;
  float spread = 3;
  std::vector<float> values{};
};

void play(const SoftmaxRow& row, Side& side, Layout layout, Results& results) {
  const SoftmaxDesc d{.x = {.shape = row.x, .layout = layout}, .axis = row.axis};
  const auto plan = side.ops().plan(d);
  const CTensor x =
      side.input(d.x, row.values.empty() ? random_values(d.x.count(), 1, -row.spread, row.spread)
                                         : row.values);
  const CTensor dy = side.input(d.x, random_values(d.x.count(), 2));
  for (int arena = 0; arena < 2; ++arena) {
    plan->bind(side.workspace(plan->needs()));
    for (int pass = 0; pass < 2; ++pass) {
      const Tensor y = side.output(d.x);
      plan->forward(x, y);
      results.put("y", side.read(y));
      both_writes(side, results, "dx", d.x, [&](const Grad& dx) { plan->backward(y, dy, dx); });
    }
  }
}

const std::vector<SoftmaxRow> kSoftmaxRows = {
    {.name = "two_axes", .x = {8, 10}},
    {.name = "two_axes_axis_0", .x = {8, 10}, .axis = 0},
    {.name = "one_axis", .x = {12}, .axis = 0},
    {.name = "thousand_classes", .x = {4, 1000}},
    {.name = "one_class", .x = {5, 1}},
    {.name = "two_classes", .x = {5, 2}},
    {.name = "one_sample", .x = {1, 10}},
    {.name = "four_axes", .x = {2, 21, 5, 6}},
    {.name = "four_axes_axis_0", .x = {3, 4, 5, 6}, .axis = 0},
    {.name = "four_axes_axis_2", .x = {2, 4, 5, 6}, .axis = 2},
    {.name = "four_axes_axis_3", .x = {2, 4, 5, 6}, .axis = 3},
    {.name = "four_axes_many_channels", .x = {2, 64, 3, 3}},
    {.name = "three_axes", .x = {2, 7, 9}},
    {.name = "three_axes_axis_2", .x = {2, 7, 9}, .axis = 2},
    {.name = "five_axes", .x = {2, 3, 4, 2, 3}},
    {.name = "five_axes_axis_4", .x = {2, 3, 4, 2, 3}, .axis = 4},
    {.name = "one_place", .x = {4, 6, 1, 1}},
    {.name = "far_apart", .x = {4, 6}, .spread = 200},
    {.name = "large_offset", .x = {1, 4}, .values = {1e4f, 1e4f + 1, 1e4f - 1, 1e4f}},
    {.name = "extreme", .x = {3, 2}, .values = {1e30f, -1e30f, 0, 200, -1e30f, -1e30f}},
    {.name = "nan", .x = {3, 2}, .values = {0, NAN, 1, 2, NAN, NAN}},
    {.name = "minus_infinity", .x = {2, 3}, .values = {-INFINITY, 0, 1, 2, -INFINITY, -INFINITY}},
    {.name = "all_equal", .x = {2, 3}, .values = {7, 7, 7, -7, -7, -7}},
};

std::vector<Row> softmax_rows() {
  std::vector<Row> out;
  for (const SoftmaxRow& row : kSoftmaxRows) {
    out.push_back({.name = row.name, .play = [row](Side& side, Layout layout, Results& results) {
                     play(row, side, layout, results);
                   }});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Softmax, OpsRows, testing::ValuesIn(softmax_rows()), row_name);

}  // namespace
}  // namespace crema
