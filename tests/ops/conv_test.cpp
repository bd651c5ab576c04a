// Convolution: every shape of problem, forward and both backwards.
#include <algorithm>

#include "ops/ops_harness.h"

namespace crema {
namespace {

using Sizes = std::vector<int64_t>;

struct ConvRow {
  const char* name = "";
  Shape x{};
  int64_t outputs = 1;
  Sizes kernel{};
  Sizes stride{}, pad{}, dilation{};
  int groups = 1;
  bool bias = true, residual = false, need_dx = true, train = true;
  Act act{};
  float tolerance = 2e-5f;
  DType type = DType::f32;  // of x and y
};

ConvDesc desc_of(const ConvRow& row, Layout layout, DType type) {
  const int axes = row.x.axes() - 2;
  const SpatialDims kernel = dims_of(row.kernel, axes, 1);
  ConvDesc desc;
  desc.pad = dims_of(row.pad, axes, 0);
  desc.stride = dims_of(row.stride, axes, 1);
  desc.dilation = dims_of(row.dilation, axes, 1);
  desc.groups = row.groups;
  desc.bias = row.bias;
  desc.residual = row.residual;
  desc.need_dx = row.need_dx;
  desc.train = row.train;
  desc.act = row.act;
  desc.x = {.shape = row.x, .dtype = type, .layout = layout};
  desc.y = {.shape = {row.x[0], row.outputs}, .dtype = type, .layout = layout};
  desc.w = {.shape = {row.outputs, row.x[1] / row.groups}};
  for (int axis = 0; axis < axes; ++axis) {
    const int64_t reach = desc.dilation[axis] * (kernel[axis] - 1) + 1;
    desc.y.shape.push_back((row.x[axis + 2] + 2 * desc.pad[axis] - reach) / desc.stride[axis] + 1);
    desc.w.shape.push_back(kernel[axis]);
  }
  return desc;
}

/// The tensors of one row on one side.
struct ConvTensors {
  ConvTensors(Side& side, const ConvDesc& d, DType type)
      : x(side.input(d.x, rounded_values(random_values(d.x.count(), 1), type))),
        w(side.input(d.w, rounded_values(random_values(d.w.count(), 2), type))),
        dy(side.input(d.y, rounded_values(random_values(d.y.count(), 3), type))) {
    if (d.bias) b = side.input({.shape = {d.y.shape[1]}}, random_values(d.y.shape[1], 4));
    if (d.residual) {
      residual = side.input(d.y, rounded_values(random_values(d.y.count(), 5), type));
    }
  }
  CTensor x, w, dy, b, residual;
};

void play_backward_params(Side& side, const ConvDesc& d, ConvPlan& plan, const ConvTensors& t,
                          Results& results) {
  const TensorDesc bias{.shape = {d.y.shape[1]}};
  for (const Write dw_how : {Write::overwrite, Write::accumulate}) {
    for (const Write db_how : {Write::overwrite, Write::accumulate}) {
      const Grad dw = make_grad(side, d.w, dw_how);
      const Grad db = d.bias ? make_grad(side, bias, db_how) : Grad{};
      plan.backward_params(t.x, t.dy, dw, db);
      results.put(dw_how == Write::overwrite ? "dw" : "dw added", side.read(dw.t));
      if (db) results.put(db_how == Write::overwrite ? "db" : "db added", side.read(db.t));
    }
  }
  const Grad dw = make_grad(side, d.w, Write::overwrite);
  plan.backward_params(t.x, t.dy, dw, {});
  results.put("dw", side.read(dw.t));
  if (!d.bias) return;
  const Grad db = make_grad(side, bias, Write::overwrite);
  plan.backward_params(t.x, t.dy, {}, db);
  results.put("db", side.read(db.t));
}

void play_once(Side& side, const ConvDesc& d, ConvPlan& plan, const ConvTensors& t,
               Results& results) {
  for (int pass = 0; pass < 2; ++pass) {
    const Tensor y = side.output(d.y);
    plan.forward(t.x, t.w, t.b, t.residual, y);
    results.put("y", side.read(y));
  }
  if (!d.train) return;
  if (d.need_dx) {
    both_writes(side, results, "dx", d.x,
                [&](const Grad& dx) { plan.backward_data(t.dy, t.w, dx); });
  }
  play_backward_params(side, d, plan, t, results);
}

void play(const ConvRow& row, Side& side, Layout layout, Results& results) {
  const ConvDesc d = desc_of(row, layout, type_on(side, row.type));
  const auto plan = side.ops().plan(d);
  const ConvTensors t(side, d, row.type);
  for (int arena = 0; arena < 2; ++arena) {
    plan->bind(side.workspace(plan->needs()));
    plan->weights_changed(t.w);
    play_once(side, d, *plan, t, results);
  }
  side.set(t.w, rounded_values(random_values(d.w.count(), 6), row.type));
  plan->weights_changed(t.w);
  const Tensor y = side.output(d.y);
  plan->forward(t.x, t.w, t.b, t.residual, y);
  results.put("y of new weights", side.read(y));
  if (!d.train || !d.need_dx) return;
  both_writes(side, results, "dx of new weights", d.x,
              [&](const Grad& dx) { plan->backward_data(t.dy, t.w, dx); });
}

const std::vector<ConvRow> kRows = {
    // As nets have them.
    {.name = "k3_p1", .x = {2, 16, 9, 9}, .outputs = 32, .kernel = {3}, .pad = {1}},
    {.name = "k3_no_pad", .x = {2, 8, 8, 8}, .outputs = 8, .kernel = {3}},
    {.name = "k1", .x = {2, 16, 7, 7}, .outputs = 24, .kernel = {1}},
    {.name = "k1_s2", .x = {2, 16, 8, 8}, .outputs = 32, .kernel = {1}, .stride = {2}},
    {.name = "k1_half_strip", .x = {2, 24, 20, 20}, .outputs = 48, .kernel = {1}},
    {.name = "k3_p1_few_pixels_inside",
     .x = {40, 16, 3, 3},
     .outputs = 20,
     .kernel = {3},
     .pad = {1}},
    {.name = "k1_pad", .x = {1, 4, 5, 5}, .outputs = 4, .kernel = {1}, .pad = {1}},
    {.name = "k3_s2_p1",
     .x = {2, 16, 15, 15},
     .outputs = 16,
     .kernel = {3},
     .stride = {2},
     .pad = {1}},
    {.name = "k5_p2_cifar", .x = {1, 3, 32, 32}, .outputs = 32, .kernel = {5}, .pad = {2}},
    {.name = "k5_lenet", .x = {2, 1, 28, 28}, .outputs = 20, .kernel = {5}},
    {.name = "k5_lenet_second", .x = {2, 20, 12, 12}, .outputs = 50, .kernel = {5}},
    {.name = "k11_s4_alexnet", .x = {1, 3, 67, 67}, .outputs = 16, .kernel = {11}, .stride = {4}},
    {.name = "k7_s2_p3_resnet",
     .x = {1, 3, 40, 40},
     .outputs = 64,
     .kernel = {7},
     .stride = {2},
     .pad = {3}},
    // Channels.
    {.name = "one_channel_in", .x = {2, 1, 10, 10}, .outputs = 8, .kernel = {3}, .pad = {1}},
    {.name = "one_channel_out", .x = {2, 8, 10, 10}, .outputs = 1, .kernel = {3}, .pad = {1}},
    {.name = "one_channel_both", .x = {2, 1, 6, 6}, .outputs = 1, .kernel = {3}},
    {.name = "three_channels", .x = {2, 3, 11, 11}, .outputs = 5, .kernel = {3}},
    {.name = "odd_channels", .x = {2, 7, 9, 9}, .outputs = 13, .kernel = {3}, .pad = {1}},
    {.name = "prime_channels", .x = {1, 37, 5, 5}, .outputs = 41, .kernel = {3}, .pad = {1}},
    {.name = "many_channels", .x = {1, 128, 5, 5}, .outputs = 96, .kernel = {3}, .pad = {1}},
    {.name = "many_channels_k1", .x = {1, 384, 3, 3}, .outputs = 256, .kernel = {1}},
    // Groups.
    {.name = "two_groups",
     .x = {2, 16, 8, 8},
     .outputs = 32,
     .kernel = {5},
     .pad = {2},
     .groups = 2},
    {.name = "groups_of_odd", .x = {2, 9, 8, 8}, .outputs = 15, .kernel = {3}, .groups = 3},
    {.name = "many_groups",
     .x = {1, 64, 6, 6},
     .outputs = 64,
     .kernel = {3},
     .pad = {1},
     .groups = 32},
    {.name = "depthwise",
     .x = {2, 32, 9, 9},
     .outputs = 32,
     .kernel = {3},
     .pad = {1},
     .groups = 32},
    {.name = "depthwise_s2",
     .x = {2, 16, 9, 9},
     .outputs = 16,
     .kernel = {3},
     .stride = {2},
     .pad = {1},
     .groups = 16},
    {.name = "depthwise_k5_s2_d2",
     .x = {2, 48, 17, 19},
     .outputs = 48,
     .kernel = {5},
     .stride = {2},
     .pad = {4},
     .dilation = {2},
     .groups = 48},
    {.name = "depthwise_k4_k2", .x = {2, 80, 6, 7}, .outputs = 80, .kernel = {4, 2}, .groups = 80},
    {.name = "depthwise_larger_than_picture",
     .x = {2, 16, 3, 2},
     .outputs = 16,
     .kernel = {7},
     .pad = {3},
     .groups = 16},
    {.name = "depthwise_odd",
     .x = {2, 7, 9, 9},
     .outputs = 7,
     .kernel = {3},
     .pad = {1},
     .groups = 7},
    {.name = "depthwise_multiplier",
     .x = {2, 6, 9, 9},
     .outputs = 12,
     .kernel = {3},
     .pad = {1},
     .groups = 6},
    {.name = "depthwise_multiplier_3",
     .x = {1, 16, 6, 6},
     .outputs = 48,
     .kernel = {3},
     .groups = 16},
    {.name = "two_groups_k1", .x = {2, 12, 5, 5}, .outputs = 8, .kernel = {1}, .groups = 2},
    // Dilation, stride, pad, odd sizes.
    {.name = "dilation_2",
     .x = {2, 8, 11, 11},
     .outputs = 8,
     .kernel = {3},
     .pad = {2},
     .dilation = {2}},
    {.name = "dilation_h_w",
     .x = {1, 4, 13, 17},
     .outputs = 6,
     .kernel = {3},
     .pad = {1},
     .dilation = {2, 3}},
    {.name = "dilation_stride",
     .x = {1, 4, 15, 15},
     .outputs = 4,
     .kernel = {3},
     .stride = {2},
     .pad = {2},
     .dilation = {2}},
    {.name = "dilation_groups",
     .x = {1, 8, 11, 11},
     .outputs = 8,
     .kernel = {3},
     .pad = {2},
     .dilation = {2},
     .groups = 4},
    {.name = "dilation_of_k1", .x = {1, 4, 5, 5}, .outputs = 4, .kernel = {1}, .dilation = {3}},
    {.name = "stride_skips_input", .x = {1, 4, 10, 10}, .outputs = 4, .kernel = {2}, .stride = {3}},
    {.name = "stride_leaves_rest", .x = {2, 4, 12, 12}, .outputs = 4, .kernel = {3}, .stride = {4}},
    {.name = "asymmetric",
     .x = {2, 4, 9, 14},
     .outputs = 6,
     .kernel = {2, 5},
     .stride = {1, 3},
     .pad = {1, 2}},
    {.name = "tall", .x = {1, 4, 31, 3}, .outputs = 4, .kernel = {7, 1}, .pad = {3, 0}},
    {.name = "wide", .x = {1, 4, 1, 40}, .outputs = 4, .kernel = {1, 9}, .pad = {0, 4}},
    {.name = "even_kernel",
     .x = {2, 4, 8, 8},
     .outputs = 4,
     .kernel = {4},
     .stride = {2},
     .pad = {1}},
    {.name = "pad_of_kernel_less_1", .x = {1, 4, 6, 6}, .outputs = 4, .kernel = {3}, .pad = {2}},
    {.name = "pad_larger_than_kernel", .x = {1, 3, 5, 5}, .outputs = 4, .kernel = {3}, .pad = {5}},
    {.name = "pad_larger_than_input",
     .x = {1, 3, 2, 2},
     .outputs = 4,
     .kernel = {3},
     .stride = {2},
     .pad = {4}},
    {.name = "full_size_kernel", .x = {3, 8, 6, 6}, .outputs = 10, .kernel = {6}},
    {.name = "full_size_kernel_h_w", .x = {2, 5, 3, 7}, .outputs = 11, .kernel = {3, 7}},
    {.name = "one_place", .x = {2, 16, 1, 1}, .outputs = 16, .kernel = {1}},
    {.name = "one_place_k3", .x = {2, 4, 1, 1}, .outputs = 4, .kernel = {3}, .pad = {1}},
    {.name = "large_batch", .x = {65, 3, 4, 4}, .outputs = 4, .kernel = {3}},
    // Weight gradients sum over blocks of pixels, which may hold several pictures.
    {.name = "blocks_cross_pictures", .x = {11, 5, 6, 6}, .outputs = 7, .kernel = {3}, .pad = {1}},
    {.name = "blocks_cross_pictures_s2",
     .x = {9, 6, 15, 13},
     .outputs = 10,
     .kernel = {5},
     .stride = {2},
     .pad = {2}},
    {.name = "blocks_without_pad", .x = {3, 32, 11, 11}, .outputs = 20, .kernel = {1}},
    {.name = "blocks_in_groups",
     .x = {6, 12, 8, 8},
     .outputs = 18,
     .kernel = {3},
     .pad = {2},
     .dilation = {2},
     .groups = 2},
    {.name = "blocks_of_many_columns",
     .x = {2, 120, 12, 12},
     .outputs = 8,
     .kernel = {3},
     .pad = {1}},
    {.name = "blocks_by_tap", .x = {5, 64, 9, 8}, .outputs = 25, .kernel = {3}, .pad = {1}},
    {.name = "blocks_by_tap_s2_d2",
     .x = {4, 128, 13, 14},
     .outputs = 10,
     .kernel = {3},
     .stride = {2},
     .pad = {2},
     .dilation = {2}},
    {.name = "blocks_by_tap_of_padding_alone",
     .x = {2, 128, 3, 4},
     .outputs = 8,
     .kernel = {3},
     .pad = {4},
     .dilation = {4}},
    {.name = "blocks_by_row", .x = {6, 16, 7, 7}, .outputs = 12, .kernel = {5, 7}, .pad = {2, 3}},
    {.name = "blocks_by_row_no_bias",
     .x = {6, 16, 7, 7},
     .outputs = 12,
     .kernel = {5, 7},
     .pad = {2, 3},
     .bias = false},
    {.name = "blocks_of_many_outputs", .x = {2, 16, 13, 13}, .outputs = 140, .kernel = {1}},
    // Other numbers of axes.
    {.name = "one_axis", .x = {2, 6, 20}, .outputs = 8, .kernel = {3}, .pad = {1}},
    {.name = "one_axis_s2_d2",
     .x = {2, 5, 21},
     .outputs = 7,
     .kernel = {3},
     .stride = {2},
     .pad = {1},
     .dilation = {2}},
    {.name = "one_axis_groups", .x = {2, 6, 12}, .outputs = 9, .kernel = {4}, .groups = 3},
    {.name = "three_axes", .x = {1, 4, 5, 6, 7}, .outputs = 6, .kernel = {3}, .pad = {1}},
    {.name = "three_axes_all_differ",
     .x = {2, 3, 6, 7, 8},
     .outputs = 4,
     .kernel = {1, 2, 3},
     .stride = {1, 2, 3},
     .pad = {0, 1, 2}},
    {.name = "three_axes_dilation",
     .x = {1, 4, 6, 6, 6},
     .outputs = 4,
     .kernel = {2},
     .dilation = {1, 2, 3}},
    {.name = "three_axes_groups",
     .x = {1, 4, 4, 4, 4},
     .outputs = 8,
     .kernel = {3},
     .pad = {1},
     .groups = 2},
    {.name = "three_axes_depthwise",
     .x = {1, 8, 4, 4, 4},
     .outputs = 8,
     .kernel = {3},
     .pad = {1},
     .groups = 8},
    {.name = "four_axes", .x = {1, 2, 3, 4, 3, 4}, .outputs = 3, .kernel = {2}, .pad = {1}},
    {.name = "four_axes_all_differ",
     .x = {2, 4, 3, 4, 5, 3},
     .outputs = 2,
     .kernel = {1, 2, 3, 2},
     .stride = {1, 2, 1, 1},
     .groups = 2},
    {.name = "five_axes", .x = {1, 2, 2, 3, 2, 3, 2}, .outputs = 2, .kernel = {2}},
    // What is there and what is not.
    {.name = "no_bias", .x = {2, 8, 7, 7}, .outputs = 8, .kernel = {3}, .bias = false},
    {.name = "no_dx", .x = {2, 3, 9, 9}, .outputs = 8, .kernel = {3}, .need_dx = false},
    {.name = "test_only",
     .x = {2, 8, 9, 9},
     .outputs = 8,
     .kernel = {3},
     .pad = {1},
     .train = false},
    {.name = "relu", .x = {2, 8, 9, 9}, .outputs = 8, .kernel = {3}, .act = {ActKind::relu}},
    {.name = "leaky_relu",
     .x = {2, 8, 9, 9},
     .outputs = 8,
     .kernel = {3},
     .act = {ActKind::relu, 0.1f}},
    {.name = "negative_slope_relu",
     .x = {2, 8, 9, 9},
     .outputs = 8,
     .kernel = {3},
     .act = {ActKind::relu, -0.5f}},
    {.name = "relu6", .x = {2, 8, 9, 9}, .outputs = 8, .kernel = {3}, .act = {ActKind::relu6}},
    {.name = "elu", .x = {2, 8, 9, 9}, .outputs = 8, .kernel = {3}, .act = {ActKind::elu, 0.7f}},
    {.name = "relu_no_bias",
     .x = {2, 8, 9, 9},
     .outputs = 8,
     .kernel = {3},
     .bias = false,
     .act = {ActKind::relu}},
    {.name = "residual",
     .x = {2, 8, 6, 6},
     .outputs = 16,
     .kernel = {3},
     .pad = {1},
     .residual = true},
    {.name = "residual_relu",
     .x = {2, 8, 6, 6},
     .outputs = 16,
     .kernel = {3},
     .pad = {1},
     .residual = true,
     .act = {ActKind::relu}},
    {.name = "residual_no_bias_elu",
     .x = {2, 8, 6, 6},
     .outputs = 5,
     .kernel = {1},
     .bias = false,
     .residual = true,
     .act = {ActKind::elu, 1}},
    {.name = "residual_test_only",
     .x = {1, 16, 6, 6},
     .outputs = 16,
     .kernel = {3},
     .pad = {1},
     .residual = true,
     .train = false,
     .act = {ActKind::relu}},
    {.name = "relu_groups",
     .x = {2, 8, 6, 6},
     .outputs = 8,
     .kernel = {3},
     .groups = 2,
     .act = {ActKind::relu}},
    {.name = "relu_depthwise",
     .x = {2, 16, 6, 6},
     .outputs = 16,
     .kernel = {3},
     .pad = {1},
     .groups = 16,
     .act = {ActKind::relu6}},
    {.name = "relu_four_axes",
     .x = {1, 2, 3, 3, 3, 3},
     .outputs = 3,
     .kernel = {2},
     .act = {ActKind::relu, 0.2f}},
    // Large enough for Winograd's tiles (winograd_test.cpp says which), cut at every border.
    {.name = "tiles_3",
     .x = {3, 24, 16, 15},
     .outputs = 33,
     .kernel = {3},
     .pad = {1},
     .residual = true,
     .act = {ActKind::relu}},
    {.name = "tiles_3_no_pad",
     .x = {2, 20, 21, 25},
     .outputs = 40,
     .kernel = {3},
     .act = {ActKind::relu, 0.1f}},
    {.name = "tiles_3_wide_pad",
     .x = {2, 16, 17, 19},
     .outputs = 24,
     .kernel = {3},
     .pad = {2},
     .bias = false,
     .act = {ActKind::elu, 0.7f}},
    {.name = "tiles_3_groups",
     .x = {4, 72, 14, 14},
     .outputs = 96,
     .kernel = {3},
     .pad = {1},
     .groups = 3},
    {.name = "tiles_5", .x = {3, 24, 12, 13}, .outputs = 34, .kernel = {5}, .pad = {2}},
    {.name = "tiles_5_no_pad",
     .x = {4, 32, 13, 11},
     .outputs = 24,
     .kernel = {5},
     .act = {ActKind::relu6}},
    {.name = "tiles_for_scores",
     .x = {3, 32, 16, 16},
     .outputs = 32,
     .kernel = {3},
     .pad = {1},
     .train = false},
};

std::vector<Row> rows() {
  std::vector<Row> out;
  for (const ConvRow& row : kRows) {
    out.push_back({.name = row.name,
                   .play = [row](Side& side, Layout layout,
                                 Results& results) { play(row, side, layout, results); },
                   .tolerance = {.relative = row.tolerance}});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Conv, OpsRows, testing::ValuesIn(rows()), row_name);

// ---- 16-bit floats: what is rounded is y and dx alone ----

const std::vector<std::string> kLowRows = {
    "k3_p1",          "k1_s2",
    "k5_p2_cifar",    "k5_lenet",
    "no_bias",        "k5_lenet_second",
    "three_channels", "odd_channels",
    "two_groups",     "k7_s2_p3_resnet",
    "no_dx",          "test_only",
    "relu",           "elu",
    "residual_relu",  "residual_no_bias_elu",
};

std::vector<Row> low_rows() {
  std::vector<Row> out;
  for (const auto& [suffix, type] :
       {std::pair("_bf16", DType::bf16), std::pair("_f16", DType::f16)}) {
    for (ConvRow row : kRows) {
      if (std::find(kLowRows.begin(), kLowRows.end(), row.name) == kLowRows.end()) continue;
      row.type = type;
      out.push_back({.name = str(row.name, suffix),
                     .play = [row](Side& side, Layout layout,
                                   Results& results) { play(row, side, layout, results); },
                     .tolerance = {.relative = type == DType::bf16 ? 6e-3f : 1e-3f},
                     .needs = type});
    }
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(ConvLow, OpsRows, testing::ValuesIn(low_rows()), row_name);

TEST(ConvLow, RefusesWhatTheBackendHasNot) {
  const auto ops = cpu_ops();
  ConvRow row{.name = "", .x = {2, 8, 7, 7}, .outputs = 8, .kernel = {3}};
  const auto reason = [&](DType type) {
    return ops->why_not(desc_of(row, Layout::nhwc, type)).value_or("");
  };
  EXPECT_EQ(reason(DType::f32), "");
  EXPECT_EQ(reason(DType::bf16), ops->why_not_precision(DType::bf16).value_or(""));
  EXPECT_EQ(reason(DType::f16), "a CPU has f32 and bf16 only");
  row.x = {1, 8, 5, 5, 5, 5};
  EXPECT_NE(reason(DType::bf16), "");
}

}  // namespace
}  // namespace crema
