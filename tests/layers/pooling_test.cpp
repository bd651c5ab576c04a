// Pooling: window arithmetic, the three methods, the mask top, and refusals.
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields, const std::string& tops = "top: \"y\"") {
  return "layer { name: \"l\" type: \"Pooling\" bottom: \"x\" " + tops + " pooling_param { " +
         fields + " } }";
}

/// Values far enough apart for differences of maxima.
LayerInput picture(const Shape& shape) {
  return {.name = "x", .shape = shape, .draw = Draw::distinct};
}

const std::vector<LayerCase> kCases = {
    {.name = "max_known_values",
     .layer = layer("kernel_size: 2 stride: 2"),
     .inputs = {{"x", {1, 1, 2, 3}, {1, 5, 2, 4, 5, 6}}},
     .expect = {{"y", {5, 6}}},
     .shapes = {{"y", {1, 1, 1, 2}}},
     .top_gradients = {{"y", {1, 2}}},
     .expect_gradients = {{"x", {0, 1, 0, 0, 0, 2}}},
     .check_gradient = false},
    {.name = "max_overhang",
     .layer = layer("kernel_size: 3 stride: 2"),
     .inputs = {picture({2, 3, 6, 5})},
     .shapes = {{"y", {2, 3, 3, 2}}},
     .step = 1e-3f},
    {.name = "max_padded_overhang",
     .layer = layer("kernel_size: 3 stride: 3 pad: 2"),
     .inputs = {picture({1, 2, 5, 5})},
     .shapes = {{"y", {1, 2, 3, 3}}},
     .step = 1e-3f},
    {.name = "max_mask",
     .layer = layer("kernel_size: 2 stride: 2", "top: \"y\" top: \"mask\""),
     .inputs = {{"x", {1, 1, 2, 4}, {1, 2, 3, 9, 4, 5, 7, 8}}},
     .expect = {{"y", {5, 9}}, {"mask", {5, 3}}},
     .check_gradient = false,
     .no_loss = {"mask"}},
    {.name = "average_overhang_floor",
     .layer = layer("pool: AVE kernel_size: 3 stride: 2 round_mode: FLOOR"),
     .inputs = {{"x", {2, 3, 6, 7}}},
     .shapes = {{"y", {2, 3, 2, 3}}}},
    {.name = "average_padded_overhang",
     .layer = layer("pool: AVE kernel_h: 3 kernel_w: 2 stride: 2 pad_h: 1"),
     .inputs = {{"x", {2, 2, 6, 5}}},
     .shapes = {{"y", {2, 2, 4, 3}}}},
    {.name = "average_global",
     .layer = layer("pool: AVE global_pooling: true"),
     .inputs = {{"x", {1, 2, 1, 3}, {1, 2, 3, 4, 5, 9}}},
     .expect = {{"y", {2, 6}}},
     .shapes = {{"y", {1, 2, 1, 1}}}},
    {.name = "one_spatial_axis",
     .layer = layer("kernel_size: 2 stride: 2"),
     .inputs = {picture({2, 3, 7})},
     .shapes = {{"y", {2, 3, 4}}},
     .step = 1e-3f},
    {.name = "three_spatial_axes",
     .layer = layer("pool: AVE kernel_size: 2 stride: 1"),
     .inputs = {{"x", {1, 2, 3, 4, 3}}},
     .shapes = {{"y", {1, 2, 2, 3, 2}}}},
    {.name = "kernel_larger_than_the_picture",
     .layer = layer("kernel_size: 3 stride: 2"),
     .inputs = {{"x", {1, 1, 2, 2}, {1, 2, 3, 4}}},
     .expect = {{"y", {4}}},
     .check_gradient = false},
    {.name = "stochastic_in_test_is_the_weighted_mean",
     .layer = layer("pool: STOCHASTIC kernel_size: 2"),
     .inputs = {{"x", {1, 1, 2, 2}, {1, 0, 3, 0}}},
     .expect = {{"y", {2.5f}}},
     .phase = TEST,
     .backward = false},
};
INSTANTIATE_TEST_SUITE_P(Pooling, LayerCases, testing::ValuesIn(kCases), case_name);

TEST(Pooling, StochasticTakesAnElementOfTheWindowAndSendsTheGradientThere) {
  const LayerCase test{
      .name = "stochastic",
      .layer = layer("pool: STOCHASTIC kernel_size: 2 stride: 2"),
      .inputs = {{.name = "x", .shape = {2, 3, 6, 6}, .draw = Draw::distinct, .low = 1, .high = 2}},
      .top_gradients = {{"y", std::vector<float>(54, 1.0f)}}};
  const LayerRun run = run_layer(test);
  const std::vector<float>& gradient = run.gradients.at("x");
  EXPECT_EQ(std::count(gradient.begin(), gradient.end(), 1.0f), 54);
  EXPECT_EQ(std::count(gradient.begin(), gradient.end(), 0.0f), 162);
}

void expect_bad(const std::string& fields, const std::string& text,
                const Shape& shape = {2, 3, 5, 5}) {
  expect_error({.name = "bad", .layer = layer(fields), .inputs = {{"x", shape}}}, text);
}

TEST(PoolingErrors, NameTheFieldAndTheNumbers) {
  expect_bad("pool: MAX", "kernel_size: missing");
  expect_bad("kernel_size: 0", "kernel_size: must be at least 1");
  expect_bad("kernel_size: 2 stride: 0", "stride: must be at least 1");
  expect_bad("kernel_size: 2 pad: 2", "pad: 2 2 must be less than kernel_size 2 2");
  expect_bad("kernel_size: 2 kernel_h: 2 kernel_w: 2",
             "kernel_size: excludes kernel_h and kernel_w");
  expect_bad("kernel_w: 2", "kernel_h: missing beside kernel_w");
  expect_bad("kernel_size: 2 global_pooling: true", "kernel_size: excludes global_pooling");
  expect_bad("pad: 1 global_pooling: true", "pad: must be 0 with global_pooling");
  expect_bad("stride: 2 global_pooling: true", "stride: must be 1 with global_pooling");
  expect_bad("kernel_size: 2 pad: 1 pool: STOCHASTIC", "pad: must be 0 with pool: STOCHASTIC");
  expect_bad("kernel_size: 2", "1 to 3 spatial axes", {2, 3});
}

TEST(PoolingErrors, AMaskNeedsMax) {
  expect_error({.name = "bad",
                .layer = layer("pool: AVE kernel_size: 2", "top: \"y\" top: \"mask\""),
                .inputs = {{"x", {1, 1, 2, 2}}}},
               "top");
}

TEST(Reports, B45_WindowBeyondTheImageIsDropped) {
  for (const char* pool : {"MAX", "AVE"}) {
    const LayerRun run =
        run_layer({.name = "strided",
                   .layer = layer(std::string("kernel_size: 1 stride: 2 pool: ") + pool),
                   .inputs = {{"x", {1, 1, 6, 6}, std::vector<float>(36, 3.0f)}}});
    EXPECT_EQ(run.shapes.at("y"), Shape({1, 1, 3, 3}));
    EXPECT_EQ(run.blobs.at("y"), std::vector<float>(9, 3.0f));
  }
}

TEST(Reports, B46_AverageDividesByThePaddedWindow) {
  const LayerRun run = run_layer({.name = "padded",
                                  .layer = layer("kernel_size: 3 pad: 1 pool: AVE"),
                                  .inputs = {{"x", {1, 1, 3, 3}, std::vector<float>(9, 1.0f)}}});
  const float corner = 4.0f / 9, edge = 6.0f / 9;
  EXPECT_TRUE(values_near(run.blobs.at("y"),
                          {corner, edge, corner, edge, 1, edge, corner, edge, corner}, 1e-6f));
}

TEST(Reports, B53_WindowThatDoesNotFit) {
  expect_bad("kernel_size: 9", "kernel_size: 9 9 does not fit into 4 4 with pad 0 0", {1, 1, 4, 4});
}

}  // namespace
}  // namespace crema
