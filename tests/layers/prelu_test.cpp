// PReLU: a slope per channel or one for all.
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields = "") {
  return "layer { name: \"l\" type: \"PReLU\" bottom: \"x\" top: \"y\" prelu_param { " + fields +
         " } }";
}

LayerInput values(const Shape& shape) {
  return {.name = "x", .shape = shape, .draw = Draw::distinct};
}

const std::vector<LayerCase> kCases = {
    {.name = "known_values",
     .layer = layer(),
     .inputs = {{"x", {2, 2}, {-1, -2, 3, 0}}},
     .params = {{0.5f, 0.25f}},
     .expect = {{"y", {-0.5f, -0.5f, 3, 0}}},
     .check_gradient = false,
     .in_place = true},
    {.name = "shared_known_values",
     .layer = layer("channel_shared: true"),
     .inputs = {{"x", {1, 2}, {-1, -2}}},
     .params = {{0.5f}},
     .expect = {{"y", {-0.5f, -1}}}},
    {.name = "channels",
     .layer = layer(),
     .inputs = {values({2, 3, 2, 2})},
     .in_place = true,
     .step = 5e-3f},
    {.name = "shared",
     .layer = layer("channel_shared: true"),
     .inputs = {values({2, 3, 2, 2})},
     .in_place = true,
     .step = 5e-3f},
    {.name = "two_axes", .layer = layer(), .inputs = {values({4, 3})}, .step = 5e-3f},
};
INSTANTIATE_TEST_SUITE_P(PReLU, LayerCases, testing::ValuesIn(kCases), case_name);

TEST(PReLUErrors, NeedsChannels) {
  expect_error({.name = "bad", .layer = layer(), .inputs = {{"x", {2}}}},
               "must have at least 2 axes");
  expect_error(
      {.name = "bad", .layer = layer("filler { type: \"constnt\" }"), .inputs = {{"x", {2, 2}}}},
      "constant");
}

}  // namespace
}  // namespace crema
