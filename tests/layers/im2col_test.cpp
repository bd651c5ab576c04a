// Im2col: windows as columns, over any number of spatial axes.
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields) {
  return "layer { name: \"l\" type: \"Im2col\" bottom: \"x\" top: \"y\" convolution_param { " +
         fields + " } }";
}

const std::vector<LayerCase> kCases = {
    {.name = "known_values",
     .layer = layer("kernel_h: 1 kernel_w: 2 pad_w: 1"),
     .inputs = {{"x", {1, 1, 1, 2}, {1, 2}}},
     .expect = {{"y", {0, 1, 2, 1, 2, 0}}},
     .shapes = {{"y", {1, 2, 1, 3}}}},
    {.name = "stride_pad_dilation",
     .layer = layer("kernel_size: 3 stride: 2 pad: 1 dilation: 2"),
     .inputs = {{"x", {2, 2, 6, 7}}},
     .shapes = {{"y", {2, 18, 2, 3}}}},
    {.name = "three_spatial_axes",
     .layer = layer("kernel_size: 2"),
     .inputs = {{"x", {2, 2, 3, 2, 3}}},
     .shapes = {{"y", {2, 16, 2, 1, 2}}}},
    {.name = "axis_2",
     .layer = layer("kernel_size: 2 axis: 2"),
     .inputs = {{"x", {2, 2, 2, 3, 3}}},
     .shapes = {{"y", {2, 2, 8, 2, 2}}}},
};
INSTANTIATE_TEST_SUITE_P(Im2col, LayerCases, testing::ValuesIn(kCases), case_name);

TEST(Im2colErrors, NameTheField) {
  expect_error({.name = "bad", .layer = layer("pad: 1"), .inputs = {{"x", {1, 2, 3, 3}}}},
               "kernel_size: missing");
  expect_error({.name = "bad", .layer = layer("kernel_size: 4"), .inputs = {{"x", {1, 2, 3, 3}}}},
               "kernel_size: 4 4 with dilation 1 1 does not fit into 3 3");
  expect_error({.name = "bad",
                .layer = layer("kernel_size: 60000 pad: 60000"),
                .inputs = {{"x", {1, 2, 3, 3}}}},
               "has more than");
}

}  // namespace
}  // namespace crema
