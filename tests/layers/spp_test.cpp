// SPP: pyramids of one to three levels.
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields) {
  return "layer { name: \"l\" type: \"SPP\" bottom: \"x\" top: \"y\" spp_param { " + fields +
         " } }";
}

LayerInput picture(const Shape& shape) {
  return {.name = "x", .shape = shape, .draw = Draw::distinct};
}

const std::vector<LayerCase> kCases = {
    {.name = "known_values",
     .layer = layer("pyramid_height: 2"),
     .inputs = {{"x", {1, 1, 2, 2}, {1, 2, 4, 3}}},
     .expect = {{"y", {4, 1, 2, 4, 3}}},
     .shapes = {{"y", {1, 5}}},
     .check_gradient = false},
    {.name = "height_1_is_pooling",
     .layer = layer("pyramid_height: 1"),
     .inputs = {picture({2, 3, 4, 5})},
     .shapes = {{"y", {2, 3, 1, 1}}},
     .step = 1e-3f},
    {.name = "max",
     .layer = layer("pyramid_height: 3"),
     .inputs = {picture({2, 2, 9, 8})},
     .shapes = {{"y", {2, 42}}},
     .step = 1e-3f},
    {.name = "average",
     .layer = layer("pyramid_height: 2 pool: AVE"),
     .inputs = {{"x", {2, 3, 5, 4}}},
     .shapes = {{"y", {2, 15}}}},
};
INSTANTIATE_TEST_SUITE_P(SPP, LayerCases, testing::ValuesIn(kCases), case_name);

TEST(SPPErrors, NameTheField) {
  expect_error({.name = "bad", .layer = layer(""), .inputs = {{"x", {1, 1, 4, 4}}}},
               "pyramid_height: must be");
  expect_error(
      {.name = "bad", .layer = layer("pyramid_height: 3"), .inputs = {{"x", {1, 1, 3, 3}}}},
      "pyramid_height: level 2 would cut 3 rows or columns into 4 bins");
  expect_error({.name = "bad", .layer = layer("pyramid_height: 2"), .inputs = {{"x", {1, 4, 4}}}},
               "must have 4 axes");
}

}  // namespace
}  // namespace crema
