// What takes 16-bit blobs beside convolutions and inner products: pooling, formulas, sums, copies,
// dropout, batch norm. The oracle computes in f32 from the same rounded values.
#include <cmath>

#include "ops/kernels/copy_rows.h"
#include "ops/kernels/dropout.h"
#include "ops/kernels/eltwise.h"
#include "ops/ops_harness.h"

namespace crema {
namespace {

constexpr DType kTypes[] = {DType::bf16, DType::f16};

const char* suffix_of(DType type) { return type == DType::bf16 ? "_bf16" : "_f16"; }
float step_of(DType type) { return type == DType::bf16 ? 4e-3f : 5e-4f; }  // of rounding

using Play = std::function<void(Side&, Layout, DType, Results&)>;

/// A row for each type; steps: how many roundings may differ.
void add_rows(std::vector<Row>& rows, const std::string& name, const Play& play, float steps = 1,
              bool both_layouts = true) {
  for (const DType type : kTypes) {
    rows.push_back({.name = name + suffix_of(type),
                    .play = [=](Side& side, Layout layout,
                                Results& results) { play(side, layout, type, results); },
                    .tolerance = {.relative = steps * step_of(type)},
                    .both_layouts = both_layouts,
                    .needs = type});
  }
}

CTensor rounded_input(Side& side, const TensorDesc& desc, DType type, uint64_t key) {
  return side.input(desc, rounded_values(random_values(desc.count(), key), type));
}

/// both_writes with what is added to rounded.
void both_low_writes(Side& side, Results& results, const std::string& name, const TensorDesc& desc,
                     DType type, const std::function<void(const Grad&)>& f) {
  const Tensor first = side.output(desc);
  f({first, Write::overwrite});
  results.put(name, side.read(first));
  const Tensor added = side.inout(desc, rounded_values(random_values(desc.count(), 4711), type));
  f({added, Write::accumulate});
  results.put(name + " added", side.read(added));
}

// ---- Pooling

struct PoolRow {
  const char* name;
  Shape x, y;
  std::vector<int64_t> kernel, stride, pad{};
};

void play_pool(const PoolRow& row, PoolKind kind, Side& side, Layout layout, DType type,
               Results& results) {
  const DType own = type_on(side, type);
  const int axes = row.x.axes() - 2;
  const PoolDesc d{.x = {.shape = row.x, .dtype = own, .layout = layout},
                   .y = {.shape = row.y, .dtype = own, .layout = layout},
                   .kind = kind,
                   .kernel = dims_of(row.kernel, axes, 1),
                   .stride = dims_of(row.stride, axes, 1),
                   .pad = dims_of(row.pad, axes, 0)};
  const auto plan = side.ops().plan(d);
  const CTensor x = rounded_input(side, d.x, type, 1), dy = rounded_input(side, d.y, type, 2);
  for (int arena = 0; arena < 2; ++arena) {
    plan->bind(side.workspace(plan->needs()));
    const Tensor y = side.output(d.y);
    plan->forward(x, y, {});
    results.put("y", side.read(y));
    both_low_writes(side, results, "dx", d.x, type,
                    [&](const Grad& dx) { plan->backward(x, y, dy, dx); });
  }
}

const std::vector<PoolRow> kPoolRows = {
    {"k2_s2", {2, 8, 8, 8}, {2, 8, 4, 4}, {2}, {2}},
    {"k3_s2_overhang", {3, 37, 8, 8}, {3, 37, 4, 4}, {3}, {2}},
    {"k3_s1_p1_three_channels", {2, 3, 7, 7}, {2, 3, 7, 7}, {3}, {1}, {1}},
    {"global", {2, 20, 17, 17}, {2, 20, 1, 1}, {17}, {1}},
    {"three_axes", {1, 4, 6, 6, 6}, {1, 4, 3, 3, 3}, {2}, {2}},
};

// ---- Formulas

void play_unary(Unary kind, const UnaryArgs& args, Side& side, Layout layout, DType type,
                Results& results) {
  const TensorDesc desc{.shape = {2, 7, 11, 13}, .dtype = type_on(side, type), .layout = layout};
  const CTensor x = rounded_input(side, desc, type, 1), dy = rounded_input(side, desc, type, 2);
  const std::vector<float> given = rounded_values(random_values(desc.count(), 3), type);
  const CTensor other = side.input(desc, given);  // y as it was stored
  const Tensor y = side.output(desc);
  side.ops().unary(kind, args, x, y);
  results.put("y", side.read(y));
  const bool by_x = kind == Unary::absval;
  both_low_writes(side, results, "dx", desc, type, [&](const Grad& dx) {
    side.ops().unary_backward(kind, args, by_x ? x : CTensor(), by_x ? CTensor() : other, dy, dx);
  });
}

void play_add(Side& side, Layout layout, DType type, Results& results) {
  const TensorDesc desc{.shape = {3, 5, 19, 7}, .dtype = type_on(side, type), .layout = layout};
  const CTensor src = rounded_input(side, desc, type, 1);
  const Tensor dst = side.inout(desc, rounded_values(random_values(desc.count(), 2), type));
  side.ops().add(src, dst);
  results.put("sum", side.read(dst));
  const Tensor filled = side.output(desc);
  side.ops().fill(0.75f, filled);
  results.put("filled", side.read(filled));
}

// ---- Functors

template <class Sum, class Gradient, class T>
void sum_of(Side& side, const CTensor& a, const CTensor& b, const Tensor& y, const Grad* dx,
            bool relu) {
  const auto* p = static_cast<const T*>(a.data);
  const auto* q = static_cast<const T*>(b.data);
  if (dx == nullptr) {
    return run(side.ops(), Sum{{p, q, static_cast<T*>(y.data), 0.5f, -2, 0.25f, relu}}, a.count());
  }
  const bool adds = dx->how == Write::accumulate;
  run(side.ops(), Gradient{{p, q, static_cast<T*>(dx->t.data), 3, 0.25f, relu, adds}}, a.count());
}

/// The sum into y or, where dx is given, its gradient.
void sum_on(Side& side, const CTensor& a, const CTensor& b, const Tensor& y, const Grad* dx,
            bool relu) {
  switch (a.desc.dtype) {
    case DType::bf16:
      return sum_of<WeightedSumBf16, WeightedGradientBf16, Bf16>(side, a, b, y, dx, relu);
    case DType::f16:
      return sum_of<WeightedSumF16, WeightedGradientF16, F16>(side, a, b, y, dx, relu);
    default:
      return sum_of<WeightedSum, WeightedGradient, float>(side, a, b, y, dx, relu);
  }
}

void play_sum(bool relu, Side& side, DType type, Results& results) {
  const TensorDesc desc{.shape = {1037}, .dtype = type_on(side, type)};
  const CTensor a = rounded_input(side, desc, type, 1), b = rounded_input(side, desc, type, 2);
  const Tensor y = side.output(desc);
  sum_on(side, a, b, y, nullptr, relu);
  results.put("y", side.read(y));
  both_low_writes(side, results, "dx", desc, type,
                  [&](const Grad& dx) { sum_on(side, a, b, {}, &dx, relu); });
}

template <class Copy, class T>
void copy(Side& side, const CTensor& src, const Tensor& dst, int piece, bool adds) {
  const int64_t row = src.shape()[1], wide = dst.shape()[1];
  run(side.ops(),
      Copy{{static_cast<const T*>(src.data), static_cast<T*>(dst.data) + piece, row, wide,
            Divider(row / piece), piece, adds}},
      src.count() / piece);
}

void play_copy(int piece, Side& side, DType type, Results& results) {
  const DType own = type_on(side, type);
  const int64_t rows = 5, row = 3 * piece, wide = row + piece;
  const TensorDesc narrow{.shape = {rows, row}, .dtype = own};
  const TensorDesc whole{.shape = {rows, wide}, .dtype = own};
  const CTensor src = rounded_input(side, narrow, type, 1);
  for (const bool adds : {false, true}) {
    const Tensor dst = side.inout(whole, rounded_values(random_values(whole.count(), 2), type));
    if (own == DType::f32) {
      copy<CopyRows, float>(side, src, dst, piece, adds);
    } else if (own == DType::bf16) {
      copy<CopyRowsBf16, Bf16>(side, src, dst, piece, adds);
    } else {
      copy<CopyRowsF16, F16>(side, src, dst, piece, adds);
    }
    results.put(adds ? "added" : "copied", side.read(dst));
  }
}

template <class Mask, class T>
void drop(Side& side, const CTensor& x, const Grad& y) {
  const bool is_nhwc = x.desc.layout == Layout::nhwc;
  const Shape& shape = x.shape();
  const int64_t plane = is_nhwc ? shape.count(2) : 1, runs = DropoutOf<T>::runs_of(plane);
  run(side.ops(),
      Mask{{.x = static_cast<const T*>(x.data),
            .y = static_cast<T*>(y.t.data),
            .n = x.count(),
            .key = 77,
            .forward_count = &side.ops().step_scalars()->forward_count,
            .ratio = 0.4f,
            .scale = 1.25f,
            .accumulate = y.how == Write::accumulate,
            .is_nhwc = is_nhwc,
            .channels = Divider(is_nhwc ? shape[1] : 1),
            .runs = Divider(runs),
            .plane = plane}},
      is_nhwc ? shape[0] * runs * shape[1] : (x.count() + 3) / 4);
}

void play_dropout(Side& side, Layout layout, DType type, Results& results) {
  const TensorDesc desc{.shape = {2, 5, 7, 9}, .dtype = type_on(side, type), .layout = layout};
  const CTensor x = rounded_input(side, desc, type, 1);
  both_low_writes(side, results, "y", desc, type, [&](const Grad& y) {
    if (desc.dtype == DType::f32) return drop<DropoutMask, float>(side, x, y);
    type == DType::bf16 ? drop<DropoutMaskBf16, Bf16>(side, x, y)
                        : drop<DropoutMaskF16, F16>(side, x, y);
  });
}

// ---- Batch norm, where the device has it

void play_norm(const Act& act, Side& side, Layout layout, DType type, Results& results) {
  DType own = type_on(side, type);
  if (!side.ops().computes(Family::norm, own)) own = DType::f32;
  const TensorDesc x_desc{.shape = {3, 6, 5, 4}, .dtype = own, .layout = layout};
  const TensorDesc c{.shape = {6}};
  const NormDesc d{.x = x_desc, .affine = true, .act = act};
  const auto plan = side.ops().plan(d);
  const CTensor x = rounded_input(side, x_desc, type, 1);
  const CTensor dy = rounded_input(side, x_desc, type, 2);
  // Gradients are masked by y as it was stored.
  const CTensor y_read = rounded_input(side, x_desc, type, 5);
  const CTensor gamma = side.input(c, random_values(6, 3)),
                beta = side.input(c, random_values(6, 4));
  plan->bind(side.workspace(plan->needs()));
  const Tensor mean = side.output(c), variance = side.output(c), y = side.output(x_desc);
  plan->forward(x, mean, variance, gamma, beta, y);
  results.put("y", side.read(y));
  both_low_writes(side, results, "dx", x_desc, type, [&](const Grad& dx) {
    const Grad dgamma = make_grad(side, c, dx.how), dbeta = make_grad(side, c, dx.how);
    plan->backward(x, y_read, mean, variance, gamma, dy, dx, dgamma, dbeta);
    results.put(dx.how == Write::overwrite ? "dgamma" : "dgamma added", side.read(dgamma.t));
    results.put(dx.how == Write::overwrite ? "dbeta" : "dbeta added", side.read(dbeta.t));
  });
}

std::vector<Row> rows() {
  std::vector<Row> out;
  for (const PoolRow& row : kPoolRows) {
    for (const PoolKind kind : {PoolKind::max, PoolKind::average}) {
      add_rows(out, str(kind == PoolKind::max ? "max_" : "average_", row.name),
               [=](Side& side, Layout layout, DType type, Results& results) {
                 play_pool(row, kind, side, layout, type, results);
               });
    }
  }
  const std::vector<std::tuple<const char*, Unary, UnaryArgs>> formulas = {
      {"relu", Unary::relu, {}},
      {"relu_leaky", Unary::relu, {.a = 0.1f}},
      {"sigmoid", Unary::sigmoid, {}},
      {"absval", Unary::absval, {}}};
  for (const auto& [name, kind, args] : formulas) {
    add_rows(out, name,
             [kind = kind, args = args](Side& side, Layout layout, DType type, Results& results) {
               play_unary(kind, args, side, layout, type, results);
             });
  }
  add_rows(out, "add_and_fill", play_add);
  for (const bool relu : {false, true}) {
    add_rows(
        out, relu ? "sum_relu" : "sum",
        [=](Side& side, Layout, DType type, Results& results) {
          play_sum(relu, side, type, results);
        },
        1, false);
  }
  for (const int piece : {1, 4, 16}) {
    add_rows(
        out, str("copy_", piece),
        [=](Side& side, Layout, DType type, Results& results) {
          play_copy(piece, side, type, results);
        },
        1, false);
  }
  add_rows(out, "dropout", play_dropout);
  for (const Act& act : {Act{}, Act{ActKind::relu}}) {
    add_rows(
        out, act.kind == ActKind::none ? "norm" : "norm_relu",
        [=](Side& side, Layout layout, DType type, Results& results) {
          play_norm(act, side, layout, type, results);
        },
        2);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Low, OpsRows, testing::ValuesIn(rows()), row_name);

}  // namespace
}  // namespace crema
