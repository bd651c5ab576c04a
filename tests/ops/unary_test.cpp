// The elementwise formulas and their gradients, in place and not, with x, y or both; fill and add.
#include <cmath>

#include "ops/ops_harness.h"

namespace crema {
namespace {

/// What backward is given beside dy.
enum Given : uint8_t { x_only = 1, y_only = 2, both = 4 };

struct UnaryRow {
  const char* name = "";
  Unary kind = Unary::relu;
  UnaryArgs args{};
  uint8_t given = x_only | both;
  float low = -3, high = 3;
  std::vector<float> edges{};      // forward and backward
  std::vector<float> far_edges{};  // forward only: infinities, NaN
};

void play_forward(const UnaryRow& row, Side& side, const TensorDesc& desc,
                  const std::vector<float>& values, Results& results) {
  const CTensor x = side.input(desc, values);
  const Tensor y = side.output(desc), in_place = side.inout(desc, values);
  side.ops().unary(row.kind, row.args, x, y);
  side.ops().unary(row.kind, row.args, in_place, in_place);
  results.put("y", side.read(y));
  results.put("y", side.read(in_place));
}

void play_backward(const UnaryRow& row, Side& side, const TensorDesc& desc,
                   const std::vector<float>& values, Results& results) {
  const CTensor x = side.input(desc, values);
  const Tensor y = side.output(desc);
  side.ops().unary(row.kind, row.args, x, y);
  const std::vector<float> gradient = random_values(desc.count(), 2);
  const CTensor dy = side.input(desc, gradient);
  for (const Given given : {x_only, y_only, both}) {
    if (!(row.given & given)) continue;
    const CTensor seen_x = given == y_only ? CTensor{} : x;
    const CTensor seen_y = given == x_only ? CTensor{} : CTensor(y);
    const std::string name = str("dx from ", given == x_only   ? "x"
                                             : given == y_only ? "y"
                                                               : "both");
    both_writes(side, results, name, desc, [&](const Grad& dx) {
      side.ops().unary_backward(row.kind, row.args, seen_x, seen_y, dy, dx);
    });
    const Tensor in_place = side.inout(desc, gradient);
    side.ops().unary_backward(row.kind, row.args, seen_x, seen_y, in_place,
                              {in_place, Write::overwrite});
    results.put(name, side.read(in_place));
  }
}

/// The row's edges, then values drawn, count in all.
std::vector<float> content(const UnaryRow& row, std::vector<float> first, int64_t count) {
  const std::vector<float> drawn = random_values(count, 1, row.low, row.high);
  first.resize(std::min(first.size(), drawn.size()));
  first.insert(first.end(), drawn.begin() + static_cast<int64_t>(first.size()), drawn.end());
  return first;
}

void play(const UnaryRow& row, const Shape& shape, Side& side, Layout layout, Results& results) {
  const TensorDesc desc{.shape = shape, .layout = layout};
  std::vector<float> all = row.edges;
  all.insert(all.end(), row.far_edges.begin(), row.far_edges.end());
  play_forward(row, side, desc, content(row, all, shape.count()), results);
  play_backward(row, side, desc, content(row, row.edges, shape.count()), results);
}

const float kInf = INFINITY;

const std::vector<UnaryRow> kUnaryRows = {
    {.name = "relu",
     .kind = Unary::relu,
     .given = x_only | y_only | both,
     .edges = {0, -0.0f, 1e-30f, -1e-30f, 1e30f, -1e30f},
     .far_edges = {kInf, NAN}},
    {.name = "relu_leaky",
     .kind = Unary::relu,
     .args = {.a = 0.1f},
     .given = x_only | y_only | both,
     .edges = {0, 1e-30f, -1e-30f, 1e30f, -1e30f},
     .far_edges = {kInf, -kInf, NAN}},
    {.name = "relu_negative_slope",
     .kind = Unary::relu,
     .args = {.a = -0.5f},
     .given = x_only | both,
     .edges = {0}},
    {.name = "relu_slope_one",
     .kind = Unary::relu,
     .args = {.a = 1},
     .given = x_only | y_only | both,
     .edges = {0}},
    {.name = "relu6",
     .kind = Unary::relu6,
     .given = x_only | y_only | both,
     .low = -9,
     .high = 9,
     .edges = {0, 6, 5.5f, 6.5f},
     .far_edges = {kInf, -kInf}},
    {.name = "elu",
     .kind = Unary::elu,
     .args = {.a = 1},
     .given = y_only | both,
     .edges = {0, -50, 50, 1e-6f, -1e-6f},
     .far_edges = {kInf, -kInf, NAN}},
    {.name = "elu_half",
     .kind = Unary::elu,
     .args = {.a = 0.5f},
     .given = y_only | both,
     .edges = {0, -50}},
    {.name = "sigmoid",
     .kind = Unary::sigmoid,
     .given = y_only | both,
     .low = -8,
     .high = 8,
     .edges = {0, -100, 100, -1e30f, 1e30f},
     .far_edges = {kInf, -kInf, NAN}},
    {.name = "tanh",
     .kind = Unary::tanh,
     .given = y_only | both,
     .low = -4,
     .high = 4,
     .edges = {0, 1e-5f, -100, 100, -1e30f, 1e30f},
     .far_edges = {kInf, -kInf, NAN}},
    {.name = "swish",
     .kind = Unary::swish,
     .args = {.a = 1},
     .edges = {0, -80, 80},
     .far_edges = {kInf, NAN}},
    {.name = "swish_beta", .kind = Unary::swish, .args = {.a = 2.5f}, .edges = {0, -30, 30}},
    {.name = "swish_beta_zero", .kind = Unary::swish, .args = {.a = 0}, .edges = {0}},
    {.name = "bnll",
     .kind = Unary::bnll,
     .low = -8,
     .high = 8,
     .edges = {0, -50, 50, 100, -100, 1e30f, -1e30f},
     .far_edges = {kInf, -kInf, NAN}},
    {.name = "absval",
     .kind = Unary::absval,
     .edges = {0, -0.0f, 1e30f, -1e30f},
     .far_edges = {kInf, -kInf, NAN}},
    {.name = "power_one",
     .kind = Unary::power,
     .args = {.a = 1024, .b = 128, .c = 1},
     .edges = {0, -0.125f},
     .far_edges = {kInf, NAN}},
    {.name = "power_identity",
     .kind = Unary::power,
     .args = {.a = 1, .b = 0, .c = 1},
     .edges = {0, 1e30f}},
    {.name = "power_two",
     .kind = Unary::power,
     .args = {.a = 0.5f, .b = 1, .c = 2},
     .edges = {0, -2}},
    {.name = "power_three",
     .kind = Unary::power,
     .args = {.a = 1, .b = -0.5f, .c = 3},
     .edges = {0, 0.5f, -2}},
    {.name = "power_zero",
     .kind = Unary::power,
     .args = {.a = 2, .b = 1, .c = 0},
     .edges = {0, -0.5f}},
    {.name = "power_half",
     .kind = Unary::power,
     .args = {.a = 1, .b = 0.1f, .c = 0.5f},
     .low = 0,
     .edges = {0, 1e10f}},
    {.name = "power_minus_one",
     .kind = Unary::power,
     .args = {.a = 1, .b = 1, .c = -1},
     .low = 0,
     .edges = {0, 1e10f, -3}},
    {.name = "power_scale_zero",
     .kind = Unary::power,
     .args = {.a = 0, .b = 2, .c = 2.5f},
     .edges = {0}},
    {.name = "power_1_7",
     .kind = Unary::power,
     .args = {.a = 0.3f, .b = 0.2f, .c = 1.7f},
     .low = 0,
     .edges = {0}},
    {.name = "exp",
     .kind = Unary::exp,
     .args = {.a = 1},
     .given = both,
     .edges = {0, -80, 1e-6f},
     .far_edges = {-kInf, 200, NAN}},
    {.name = "exp_base_2",
     .kind = Unary::exp,
     .args = {.a = 0.6931472f, .b = 1.3862944f},
     .given = both,
     .edges = {0, 3}},
    {.name = "exp_scale_zero",
     .kind = Unary::exp,
     .args = {.a = 0, .b = 1},
     .given = both,
     .edges = {0}},
    {.name = "log",
     .kind = Unary::log,
     .args = {.a = 1, .c = 1},
     .low = 0.1f,
     .high = 20,
     .edges = {1, 1e-10f, 1e10f},
     .far_edges = {0, kInf, -1, NAN}},
    {.name = "log_base_10",
     .kind = Unary::log,
     .args = {.a = 3, .b = 0.5f, .c = 0.4342945f},
     .low = 0,
     .high = 20,
     .edges = {0}},
    {.name = "clip",
     .kind = Unary::clip,
     .args = {.a = -1, .b = 2},
     .edges = {-1, 2, 0, -0.999f, 2.001f},
     .far_edges = {kInf, -kInf}},
    {.name = "clip_to_one_value",
     .kind = Unary::clip,
     .args = {.a = 0.5f, .b = 0.5f},
     .edges = {0.5f, 0}},
    {.name = "threshold",
     .kind = Unary::threshold,
     .args = {.a = 0.25f},
     .edges = {0.25f, 0.2500001f, 0},
     .far_edges = {kInf, -kInf, NAN}},
};

std::vector<Row> unary_rows(const Shape& shape) {
  std::vector<Row> out;
  for (const UnaryRow& row : kUnaryRows) {
    out.push_back({.name = row.name,
                   .play = [=](Side& side, Layout layout,
                               Results& results) { play(row, shape, side, layout, results); },
                   .tolerance = {.relative = 1e-5f, .floor = 0.1f, .each = true}});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Unary, OpsRows, testing::ValuesIn(unary_rows({2, 7, 5, 3})), row_name);
INSTANTIATE_TEST_SUITE_P(UnaryLarge, OpsRows, testing::ValuesIn(unary_rows({3, 16, 37, 41})),
                         row_name);
INSTANTIATE_TEST_SUITE_P(UnaryOneElement, OpsRows, testing::ValuesIn(unary_rows({1})), row_name);

// ---- Activations that a plan applied ----

void play_activation(const Act& act, Side& side, Layout layout, Results& results) {
  const TensorDesc desc{.shape = {2, 9, 4, 5}, .layout = layout};
  std::vector<float> ys = random_values(desc.count(), 1, 0, 7);
  if (act.kind == ActKind::elu || act.slope != 0) ys = random_values(desc.count(), 1, -0.4f, 4);
  const CTensor y = side.input(desc, sprinkle(ys, {0, 6}, 3));
  const std::vector<float> gradient = random_values(desc.count(), 2);
  const CTensor dy = side.input(desc, gradient);
  const Tensor dx = side.output(desc), in_place = side.inout(desc, gradient);
  act_backward(side.ops(), act, y, dy, dx);
  act_backward(side.ops(), act, y, in_place, in_place);
  results.put("dx", side.read(dx));
  results.put("dx", side.read(in_place));
}

std::vector<Row> activation_rows() {
  const std::vector<std::pair<const char*, Act>> kinds = {
      {"none", {}},
      {"relu", {ActKind::relu}},
      {"leaky", {ActKind::relu, 0.2f}},
      {"relu6", {ActKind::relu6}},
      {"elu", {ActKind::elu, 0.5f}},
  };
  std::vector<Row> out;
  for (const auto& [name, act] : kinds) {
    out.push_back({.name = name, .play = [act = act](Side& side, Layout layout, Results& results) {
                     play_activation(act, side, layout, results);
                   }});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(ActBackward, OpsRows, testing::ValuesIn(activation_rows()), row_name);

// ---- Fill and add ----

void play_fill(DType dtype, const Shape& shape, float value, Side& side, Results& results) {
  const Tensor t = side.output({.shape = shape, .dtype = dtype});
  side.ops().fill(value, t);
  results.put("filled", side.read(t));
}

void play_add(const Shape& shape, Side& side, Layout layout, Results& results) {
  const TensorDesc desc{.shape = shape, .layout = layout};
  const CTensor src = side.input(desc, random_values(shape.count(), 1));
  const Tensor dst = side.inout(desc, random_values(shape.count(), 2));
  side.ops().add(src, dst);
  results.put("once", side.read(dst));
  side.ops().add(src, dst);
  results.put("twice", side.read(dst));
  side.ops().add(dst, dst);
  results.put("to itself", side.read(dst));
}

std::vector<Row> fill_and_add_rows() {
  std::vector<Row> out;
  const std::vector<std::pair<const char*, Shape>> shapes = {
      {"scalar", {}}, {"one", {1}}, {"odd", {3, 5, 7}}, {"large", {2, 64, 33, 31}}};
  for (const auto& [name, shape] : shapes) {
    for (const float value : {0.0f, -2.5f}) {
      out.push_back({.name = str("fill_", name, value == 0 ? "_zero" : ""),
                     .play = [shape = shape, value](Side& side, Layout, Results& results) {
                       play_fill(DType::f32, shape, value, side, results);
                     }});
    }
    out.push_back({.name = str("add_", name),
                   .play = [shape = shape](Side& side, Layout layout, Results& results) {
                     play_add(shape, side, layout, results);
                   }});
  }
  for (const auto& [name, dtype] : {std::pair("f16", DType::f16), std::pair("bf16", DType::bf16),
                                    std::pair("i32", DType::i32), std::pair("u8", DType::u8)}) {
    out.push_back(
        {.name = str("fill_", name), .play = [dtype = dtype](Side& side, Layout, Results& results) {
           play_fill(dtype, {3, 7}, 3, side, results);
           play_fill(dtype, {3, 7}, 3, side, results);
         }});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(FillAndAdd, OpsRows, testing::ValuesIn(fill_and_add_rows()), row_name);

}  // namespace
}  // namespace crema
