// Convolution, its transpose and the depthwise types of the forks.
#include "layers/layer.h"
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields, const std::string& type = "Convolution") {
  return "layer { name: \"l\" type: \"" + type +
         "\" bottom: \"x\" top: \"y\" convolution_param { " + fields + " } }";
}

const std::vector<LayerCase> kCases = {
    {.name = "known_values",
     .layer = layer("num_output: 1 kernel_size: 2"),
     .inputs = {{"x", {1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}}},
     .params = {{1, 0, 0, -1}, {10}},
     .expect = {{"y", {6, 6}}},
     .shapes = {{"y", {1, 1, 1, 2}}},
     .top_gradients = {{"y", {1, 2}}},
     .expect_gradients = {{"x", {1, 2, 0, 0, -1, -2}}}},
    {.name = "stride_pad_group",
     .layer = layer("num_output: 6 kernel_size: 3 stride: 2 pad: 1 group: 3"),
     .inputs = {{"x", {2, 6, 7, 6}}},
     .shapes = {{"y", {2, 6, 4, 3}}}},
    {.name = "height_and_width_differ",
     .layer = layer("num_output: 4 kernel_h: 3 kernel_w: 1 stride_h: 1 stride_w: 2 pad_h: 1"),
     .inputs = {{"x", {2, 3, 5, 6}}},
     .shapes = {{"y", {2, 4, 5, 3}}}},
    {.name = "dilated_without_bias",
     .layer = layer("num_output: 3 kernel_size: 3 dilation: 2 dilation: 1 bias_term: false"),
     .inputs = {{"x", {1, 2, 7, 5}}},
     .shapes = {{"y", {1, 3, 3, 3}}}},
    {.name = "one_spatial_axis",
     .layer = layer("num_output: 4 kernel_size: 3 pad: 1"),
     .inputs = {{"x", {2, 3, 8}}},
     .shapes = {{"y", {2, 4, 8}}}},
    {.name = "three_spatial_axes",
     .layer = layer("num_output: 3 kernel_size: 2 kernel_size: 3 kernel_size: 1"),
     .inputs = {{"x", {2, 2, 3, 4, 2}}},
     .shapes = {{"y", {2, 3, 2, 2, 2}}}},
    {.name = "no_spatial_axis",
     .layer = layer("num_output: 3 kernel_size: 3 axis: -1"),
     .inputs = {{"x", {2, 2, 4}}},
     .shapes = {{"y", {2, 2, 3}}},
     .channels_last = false},
    {.name = "no_spatial_axis_and_no_kernel_size",
     .layer = layer("num_output: 2 axis: 1"),
     .inputs = {{"x", {1, 2}, {3, 4}}},
     .params = {{1, 10, -1, 2}, {100, 200}},
     .expect = {{"y", {143, 205}}},
     .channels_last = false},
    {.name = "axis_2",
     .layer = layer("num_output: 3 kernel_size: 2 axis: 2"),
     .inputs = {{"x", {2, 2, 3, 4, 3}}},
     .shapes = {{"y", {2, 2, 3, 3, 2}}}},
    {.name = "absorbs_relu",
     .layer = layer("num_output: 4 kernel_size: 3 pad: 1") +
              R"(layer { name: "r" type: "ReLU" bottom: "y" top: "y"
                 relu_param { negative_slope: 0.1 } })",
     .inputs = {{"x", {2, 3, 4, 4}}},
     .step = 2e-3f},
    {.name = "two_bottoms",
     .layer = R"(layer { name: "l" type: "Convolution" bottom: "a" bottom: "b" top: "ya" top: "yb"
                 convolution_param { num_output: 3 kernel_size: 3 pad: 1 } })",
     .inputs = {{"a", {2, 3, 4, 4}}, {"b", {2, 3, 4, 4}}}},
    {.name = "depthwise_type",
     .layer = layer("num_output: 8 kernel_size: 3 pad: 1", "DepthwiseConvolution"),
     .inputs = {{"x", {2, 4, 5, 4}}},
     .shapes = {{"y", {2, 8, 5, 4}}}},
    {.name = "force_nd_is_ignored",
     .layer = layer("num_output: 2 kernel_size: 2 force_nd_im2col: true"),
     .inputs = {{"x", {1, 2, 3, 3}}}},
};
INSTANTIATE_TEST_SUITE_P(Convolution, LayerCases, testing::ValuesIn(kCases), case_name);

const std::vector<LayerCase> kTransposed = {
    {.name = "known_values",
     .layer = layer("num_output: 1 kernel_size: 2", "Deconvolution"),
     .inputs = {{"x", {1, 1, 1, 2}, {1, 2}}},
     .params = {{1, 2, 3, 4}, {10}},
     .expect = {{"y", {11, 14, 14, 13, 20, 18}}},
     .shapes = {{"y", {1, 1, 2, 3}}}},
    {.name = "stride_pad_group",
     .layer = layer("num_output: 6 kernel_size: 4 stride: 2 pad: 1 group: 3", "Deconvolution"),
     .inputs = {{"x", {2, 3, 4, 3}}},
     .shapes = {{"y", {2, 6, 8, 6}}}},
    {.name = "one_spatial_axis_without_bias",
     .layer = layer("num_output: 3 kernel_size: 3 stride: 2 bias_term: false", "Deconvolution"),
     .inputs = {{"x", {2, 2, 5}}},
     .shapes = {{"y", {2, 3, 11}}}},
    {.name = "dilated",
     .layer = layer("num_output: 3 kernel_size: 2 dilation: 3", "Deconvolution"),
     .inputs = {{"x", {2, 2, 3, 4}}},
     .shapes = {{"y", {2, 3, 6, 7}}}},
    {.name = "two_bottoms",
     .layer = R"(layer { name: "l" type: "Deconvolution" bottom: "a" bottom: "b" top: "ya" top: "yb"
                 convolution_param { num_output: 2 kernel_size: 3 stride: 2 } })",
     .inputs = {{"a", {1, 3, 3, 3}}, {"b", {1, 3, 3, 3}}}},
};
INSTANTIATE_TEST_SUITE_P(Deconvolution, LayerCases, testing::ValuesIn(kTransposed), case_name);

void expect_bad(const std::string& fields, const std::string& text,
                const Shape& shape = {2, 6, 5, 5}, const std::string& type = "Convolution") {
  expect_error({.name = "bad", .layer = layer(fields, type), .inputs = {{"x", shape}}}, text);
}

TEST(ConvolutionErrors, NameTheFieldAndTheNumbers) {
  expect_bad("kernel_size: 3", "num_output: missing");
  expect_bad("num_output: 0 kernel_size: 3", "num_output: must be at least 1");
  expect_bad("num_output: 4", "kernel_size: missing");
  expect_bad("num_output: 4 kernel_size: 0", "kernel_size: must be at least 1");
  expect_bad("num_output: 4 kernel_size: 3 kernel_h: 3 kernel_w: 3",
             "kernel_size: excludes kernel_h and kernel_w");
  expect_bad("num_output: 4 kernel_h: 3", "kernel_w: missing beside kernel_h");
  expect_bad("num_output: 4 kernel_size: 3 kernel_size: 3 kernel_size: 3",
             "kernel_size: 3 values, but 1 or 2");
  expect_bad("num_output: 4 kernel_h: 3 kernel_w: 3", "kernel_h: is for 2 spatial axes", {2, 6, 5});
  expect_bad("num_output: 4 kernel_size: 3 pad: 1 pad_h: 1", "pad: excludes pad_h and pad_w");
  expect_bad("num_output: 4 kernel_size: 3 stride: 0", "stride: must be at least 1");
  expect_bad("num_output: 4 kernel_size: 3 stride_h: 2", "stride_w: missing beside stride_h");
  expect_bad("num_output: 4 kernel_size: 3 dilation: 0", "dilation: must be at least 1");
  expect_bad("num_output: 4 kernel_size: 3 group: 0", "group: must be at least 1");
  expect_bad("num_output: 4 kernel_size: 3 group: 4",
             "group: 4 must divide the 6 channels of bottom \"x\"");
  expect_bad("num_output: 4 kernel_size: 3 group: 3", "group: 3 must divide num_output 4");
  expect_bad("num_output: 4 kernel_size: 3 axis: 4", "axis: 4 does not exist");
  expect_bad("num_output: 4 kernel_size: 3 pad: 4000000000", "pad: 4000000000 is too large");
  expect_bad("num_output: 4 kernel_size: 3 dilation: 1000000000", "does not fit into 5 5");
  expect_bad("num_output: 2000000000 kernel_size: 3", "top: shape 2 2000000000 3 3 has more than");
  expect_bad("num_output: 4 kernel_size: 3 pad: 5", "pad: 5 5 leaves nothing", {2, 6, 5, 5},
             "Deconvolution");
}

TEST(ConvolutionErrors, BottomsOfDifferentShapes) {
  expect_error({.name = "bad",
                .layer = R"(layer { name: "l" type: "Convolution" bottom: "a" bottom: "b"
                  top: "ya" top: "yb" convolution_param { num_output: 3 kernel_size: 3 } })",
                .inputs = {{"a", {2, 3, 4, 4}}, {"b", {2, 3, 4, 5}}}},
               "bottom \"b\" of shape 2 3 4 5 must have the shape of bottom \"a\", 2 3 4 4");
  expect_error({.name = "bad",
                .layer = R"(layer { name: "l" type: "Convolution" bottom: "a" bottom: "b" top: "ya"
                  convolution_param { num_output: 3 kernel_size: 3 } })",
                .inputs = {{"a", {2, 3, 4, 4}}, {"b", {2, 3, 4, 4}}}},
               "top: 1 tops for 2 bottoms");
}

TEST(Reports, B49_BilinearFillerWithOneGroupAddsChannelsUpAndWarns) {
  const std::vector<float> line = {0.25f, 0.75f, 0.75f, 0.25f};
  std::vector<float> plane;
  for (const float a : line) {
    for (const float b : line) plane.push_back(a * b);
  }
  const auto interior = [&](int group) {
    LayerCase test{.name = "bilinear",
                   .layer = layer("num_output: 2 kernel_size: 4 stride: 2 pad: 1 bias_term: false "
                                  "weight_filler { type: \"bilinear\" } group: " +
                                      std::to_string(group),
                                  "Deconvolution"),
                   .inputs = {{"x", {1, 2, 3, 3}, std::vector<float>(18, 1.0f)}},
                   .params = {{}}};
    for (int i = 0; i < 4 / group; ++i) {
      test.params[0].insert(test.params[0].end(), plane.begin(), plane.end());
    }
    testing::internal::CaptureStderr();
    const LayerRun run = run_layer(test);
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(log.find("bilinear") != std::string::npos, group == 1) << log;
    return run.blobs.at("y")[2 * 6 + 3];
  };
  EXPECT_NEAR(interior(2), 1, 1e-6);
  EXPECT_NEAR(interior(1), 2, 1e-6);
}

TEST(Reports, B50_FrozenDeconvolutionLetsTheGradientThrough) {
  const LayerRun run = run_layer({.name = "frozen",
                                  .layer = R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c"
              convolution_param { num_output: 2 kernel_size: 1 } }
      layer { name: "d" type: "Deconvolution" bottom: "c" top: "y" param { lr_mult: 0 }
              convolution_param { num_output: 2 kernel_size: 2 stride: 2 bias_term: false } })",
                                  .inputs = {{"x", {1, 3, 2, 2}}}});
  float largest = 0;
  for (const float g : run.param_gradients[0]) largest = std::max(largest, std::abs(g));
  EXPECT_GT(largest, 1e-3f);
}

LayerParameter parameter(const std::string& type) {
  LayerParameter param;
  param.set_name("l");
  param.set_type(type);
  param.add_bottom("x");
  param.add_top("y");
  return param;
}

TEST(Reports, B52_LargePicturesNeedNoColumnBuffer) {
  LayerParameter param = parameter("Convolution");
  param.mutable_convolution_param()->set_num_output(16);
  param.mutable_convolution_param()->add_kernel_size(5);
  EXPECT_EQ(make_layer(param, {})->infer({{1, 64, 1080, 1920}}), Shapes({{1, 16, 1076, 1916}}));
}

TEST(Reports, B53_KernelLargerThanThePicture) {
  expect_bad("num_output: 4 kernel_size: 5",
             "kernel_size: 5 5 with dilation 1 1 does not fit into 3 3", {1, 2, 3, 3});
}

}  // namespace
}  // namespace crema
