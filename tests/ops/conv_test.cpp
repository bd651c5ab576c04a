// Convolution: every shape of problem, forward and both backwards.
#include <algorithm>

#include "ops/conv_rows.h"

namespace crema {
namespace {

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

std::vector<Row> rows() {
  std::vector<Row> out;
  for (const ConvRow& row : conv_rows()) {
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
    for (ConvRow row : conv_rows()) {
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
