// Conversion between every pair of element types and layouts.
#include <cmath>

#include "ops/ops_harness.h"

namespace crema {
namespace {

const std::vector<std::pair<const char*, DType>> kTypes = {{"f32", DType::f32},
                                                           {"f16", DType::f16},
                                                           {"bf16", DType::bf16},
                                                           {"i32", DType::i32},
                                                           {"u8", DType::u8}};

bool is_whole(DType dtype) { return dtype == DType::i32 || dtype == DType::u8; }

/// Values that either type can hold, or (between floats) must round.
std::vector<float> content(int64_t count, DType from, DType to) {
  if (!is_whole(from) && !is_whole(to)) return random_values(count, 1, -4, 4);
  std::vector<float> values = random_values(count, 1, 0, 255.99f);
  for (float& v : values) v = std::floor(v);
  return values;
}

void play(DType from, DType to, Side& side, Results& results) {
  const std::vector<Shape> shapes = {{},
                                     {5},
                                     {4, 6},
                                     {2, 3, 9},
                                     {2, 5, 4, 3},
                                     {3, 1, 4, 4},
                                     {2, 32, 5, 7},
                                     {1, 17, 1, 1},
                                     {2, 8, 1, 6},
                                     {2, 3, 2, 3, 4},
                                     {1, 16, 3, 2, 5},
                                     {2, 3, 2, 2, 2, 2}};
  for (const Shape& shape : shapes) {
    for (const Layout src_layout : {Layout::nchw, Layout::nhwc}) {
      for (const Layout dst_layout : {Layout::nchw, Layout::nhwc}) {
        const CTensor src = side.input({.shape = shape, .dtype = from, .layout = src_layout},
                                       content(shape.count(), from, to));
        const Tensor dst = side.output({.shape = shape, .dtype = to, .layout = dst_layout});
        side.ops().convert(src, dst);
        results.put(str(shape), side.read(dst));
      }
    }
  }
}

std::vector<Row> rows() {
  std::vector<Row> out;
  for (const auto& [from_name, from] : kTypes) {
    for (const auto& [to_name, to] : kTypes) {
      out.push_back(
          {.name = str(from_name, "_to_", to_name),
           .play = [from = from, to = to](Side& side, Layout,
                                          Results& results) { play(from, to, side, results); },
           .tolerance = {.relative = 0},
           .both_layouts = false});
    }
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Convert, OpsRows, testing::ValuesIn(rows()), row_name);

// ---- Rounding at the edges of the small formats ----

struct EdgeRow {
  const char* name = "";
  DType dtype = DType::f16;
  std::vector<float> values{};
};

const std::vector<EdgeRow> kEdgeRows = {
    {.name = "f16_ties_to_even",
     .values = {1 + 0x1p-11f, 1 + 0x3p-11f, -1 - 0x1p-11f, 2049, 2051, 1 + 0x1.002p-11f}},
    {.name = "f16_overflow", .values = {65504, 65519, 65520, 1e30f, -65520, INFINITY, -INFINITY}},
    {.name = "f16_subnormal",
     .values = {0x1p-14f, 0x1p-15f, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 0x1p-30f, -0x3p-25f, 0, -0.0f}},
    {.name = "f16_nan", .values = {NAN, 1, NAN}},
    {.name = "bf16_ties_to_even",
     .dtype = DType::bf16,
     .values = {1 + 0x1p-8f, 1 + 0x3p-8f, -1 - 0x1p-8f, 1 + 0x1.02p-8f}},
    {.name = "bf16_overflow",
     .dtype = DType::bf16,
     .values = {3.3e38f, 3.4e38f, -3.4e38f, INFINITY, -INFINITY}},
    {.name = "bf16_nan", .dtype = DType::bf16, .values = {NAN, 1}},
};

std::vector<Row> edge_rows() {
  std::vector<Row> out;
  for (const EdgeRow& row : kEdgeRows) {
    out.push_back({.name = row.name,
                   .play =
                       [row](Side& side, Layout, Results& results) {
                         const Shape shape{static_cast<int64_t>(row.values.size())};
                         const CTensor src = side.input({.shape = shape}, row.values);
                         const Tensor dst = side.output({.shape = shape, .dtype = row.dtype});
                         side.ops().convert(src, dst);
                         results.put("low", side.read(dst));
                         const Tensor back = side.output({.shape = shape});
                         side.ops().convert(dst, back);
                         results.put("back", side.read(back));
                       },
                   .tolerance = {.relative = 0},
                   .both_layouts = false});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(ConvertEdges, OpsRows, testing::ValuesIn(edge_rows()), row_name);

}  // namespace
}  // namespace crema
