// Inner product and gemm.
#include "ops/ops_harness.h"

namespace crema {
namespace {

TensorDesc matrix(int64_t rows, int64_t columns, DType type = DType::f32) {
  return {.shape = {rows, columns}, .dtype = type};
}

// ---- Inner product ----

struct LinearRow {
  const char* name = "";
  int64_t m = 1, k = 1, n = 1;
  bool transposed = false, bias = true, need_dx = true, train = true;
  Act act{};
};

struct LinearTensors {
  LinearTensors(Side& side, const LinearDesc& d, DType type)
      : x(side.input(matrix(d.m, d.k, d.dtype), rounded_values(random_values(d.m * d.k, 1), type))),
        w(side.input(d.transposed ? matrix(d.k, d.n) : matrix(d.n, d.k),
                     rounded_values(random_values(d.k * d.n, 2), type))),
        dy(side.input(matrix(d.m, d.n, d.dtype),
                      rounded_values(random_values(d.m * d.n, 3), type))) {
    if (d.bias) b = side.input({.shape = {d.n}}, random_values(d.n, 4));
  }
  CTensor x, w, dy, b;
};

void play_backward(Side& side, const LinearDesc& d, LinearPlan& plan, const LinearTensors& t,
                   Results& results) {
  if (d.need_dx) {
    both_writes(side, results, "dx", t.x.desc,
                [&](const Grad& dx) { plan.backward_data(t.dy, t.w, dx); });
  }
  both_writes(side, results, "dw", t.w.desc,
              [&](const Grad& dw) { plan.backward_params(t.x, t.dy, dw, {}); });
  if (!d.bias) return;
  both_writes(side, results, "db", t.b.desc,
              [&](const Grad& db) { plan.backward_params(t.x, t.dy, {}, db); });
  for (const Write how : {Write::overwrite, Write::accumulate}) {
    const Grad dw = make_grad(side, t.w.desc, how), db = make_grad(side, t.b.desc, how);
    plan.backward_params(t.x, t.dy, dw, db);
    const char* suffix = how == Write::overwrite ? "" : " added";
    results.put(str("dw", suffix), side.read(dw.t));
    results.put(str("db", suffix), side.read(db.t));
  }
}

void play(LinearDesc d, Side& side, Results& results) {
  const DType type = d.dtype;
  d.dtype = type_on(side, type);
  const auto plan = side.ops().plan(d);
  const LinearTensors t(side, d, type);
  const TensorDesc out = matrix(d.m, d.n, d.dtype);
  for (int arena = 0; arena < 2; ++arena) {
    plan->bind(side.workspace(plan->needs()));
    plan->weights_changed(t.w);
    for (int pass = 0; pass < 2; ++pass) {
      const Tensor y = side.output(out);
      plan->forward(t.x, t.w, t.b, y);
      results.put("y", side.read(y));
    }
    if (d.train) play_backward(side, d, *plan, t, results);
  }
  side.set(t.w, rounded_values(random_values(d.k * d.n, 6), type));
  plan->weights_changed(t.w);
  const Tensor y = side.output(out);
  plan->forward(t.x, t.w, t.b, y);
  results.put("y of new weights", side.read(y));
  if (!d.train || !d.need_dx) return;
  both_writes(side, results, "dx of new weights", t.x.desc,
              [&](const Grad& dx) { plan->backward_data(t.dy, t.w, dx); });
}

const std::vector<LinearRow> kLinearRows = {
    {.name = "small", .m = 4, .k = 8, .n = 6},
    {.name = "lenet_ip1", .m = 4, .k = 800, .n = 500},
    {.name = "lenet_ip2", .m = 64, .k = 500, .n = 10},
    {.name = "odd", .m = 3, .k = 17, .n = 13},
    {.name = "prime", .m = 31, .k = 127, .n = 61},
    {.name = "one_sample", .m = 1, .k = 64, .n = 32},
    {.name = "one_input", .m = 5, .k = 1, .n = 7},
    {.name = "one_output", .m = 5, .k = 9, .n = 1},
    {.name = "all_one"},
    {.name = "large", .m = 8, .k = 1024, .n = 256},
    {.name = "long_sum", .m = 2, .k = 20000, .n = 3},
    {.name = "large_batch", .m = 1025, .k = 7, .n = 5},
    {.name = "transposed", .m = 4, .k = 12, .n = 9, .transposed = true},
    {.name = "transposed_one_sample", .m = 1, .k = 12, .n = 9, .transposed = true},
    {.name = "transposed_one_output", .m = 6, .k = 12, .n = 1, .transposed = true},
    {.name = "transposed_one_input", .m = 6, .k = 1, .n = 5, .transposed = true},
    {.name = "transposed_no_bias", .m = 6, .k = 20, .n = 33, .transposed = true, .bias = false},
    {.name = "no_bias", .m = 4, .k = 12, .n = 9, .bias = false},
    {.name = "no_dx", .m = 4, .k = 12, .n = 9, .need_dx = false},
    {.name = "test_only", .m = 4, .k = 12, .n = 9, .train = false},
    {.name = "relu", .m = 4, .k = 12, .n = 9, .act = {ActKind::relu}},
    {.name = "leaky_relu", .m = 4, .k = 12, .n = 9, .act = {ActKind::relu, 0.1f}},
    {.name = "relu6", .m = 4, .k = 60, .n = 9, .act = {ActKind::relu6}},
    {.name = "elu", .m = 4, .k = 12, .n = 9, .act = {ActKind::elu, 0.5f}},
    {.name = "relu_no_bias", .m = 4, .k = 12, .n = 9, .bias = false, .act = {ActKind::relu}},
    {.name = "relu_transposed",
     .m = 4,
     .k = 12,
     .n = 9,
     .transposed = true,
     .act = {ActKind::relu}},
};

std::vector<Row> linear_rows(DType type, const char* suffix, float tolerance) {
  std::vector<Row> out;
  for (const LinearRow& r : kLinearRows) {
    const LinearDesc d{.m = r.m,
                       .k = r.k,
                       .n = r.n,
                       .dtype = type,
                       .transposed = r.transposed,
                       .bias = r.bias,
                       .need_dx = r.need_dx,
                       .train = r.train,
                       .act = r.act};
    out.push_back({.name = str(r.name, suffix),
                   .play = [d](Side& side, Layout, Results& results) { play(d, side, results); },
                   .tolerance = {.relative = tolerance},
                   .both_layouts = false,
                   .needs = type});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Linear, OpsRows,
                         testing::ValuesIn(linear_rows(DType::f32, "", Tolerance{}.relative)),
                         row_name);
INSTANTIATE_TEST_SUITE_P(LinearBf16, OpsRows,
                         testing::ValuesIn(linear_rows(DType::bf16, "_bf16", 6e-3f)), row_name);
INSTANTIATE_TEST_SUITE_P(LinearF16, OpsRows,
                         testing::ValuesIn(linear_rows(DType::f16, "_f16", 1e-3f)), row_name);

// ---- Gemm ----

struct GemmRow {
  const char* name = "";
  int64_t m = 1, n = 1, k = 1;
  float alpha = 1;
};

const std::vector<GemmRow> kGemmRows = {
    {.name = "small", .m = 3, .n = 4, .k = 5},
    {.name = "square", .m = 64, .n = 64, .k = 64},
    {.name = "odd", .m = 17, .n = 29, .k = 31},
    {.name = "alpha", .m = 5, .n = 6, .k = 7, .alpha = -0.25f},
    {.name = "alpha_zero", .m = 3, .n = 2, .k = 4, .alpha = 0},
    {.name = "one_row", .m = 1, .n = 100, .k = 50},
    {.name = "one_column", .m = 100, .n = 1, .k = 50},
    {.name = "outer_product", .m = 40, .n = 30, .k = 1, .alpha = 2},
    {.name = "dot_product", .k = 1000},
    {.name = "long_sum", .m = 2, .n = 2, .k = 30000},
    {.name = "all_one"},
    {.name = "large", .m = 200, .n = 300, .k = 150},
};

void play(const GemmRow& r, bool ta, bool tb, Side& side, Results& results) {
  const TensorDesc a_desc = ta ? matrix(r.k, r.m) : matrix(r.m, r.k);
  const TensorDesc b_desc = tb ? matrix(r.n, r.k) : matrix(r.k, r.n);
  const CTensor a = side.input(a_desc, random_values(r.m * r.k, 1));
  const CTensor b = side.input(b_desc, random_values(r.k * r.n, 2));
  for (int pass = 0; pass < 2; ++pass) {
    both_writes(side, results, "c", matrix(r.m, r.n),
                [&](const Grad& c) { side.ops().gemm(ta, tb, r.alpha, a, b, c.t, c.how); });
  }
}

std::vector<Row> gemm_rows() {
  std::vector<Row> out;
  for (const GemmRow& r : kGemmRows) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        out.push_back(
            {.name = str(r.name, ta ? "_ta" : "", tb ? "_tb" : ""),
             .play = [=](Side& side, Layout, Results& results) { play(r, ta, tb, side, results); },
             .both_layouts = false});
      }
    }
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Gemm, OpsRows, testing::ValuesIn(gemm_rows()), row_name);

}  // namespace
}  // namespace crema
