// Crop: offsets, axes, refusals.
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields) {
  return "layer { name: \"l\" type: \"Crop\" bottom: \"x\" bottom: \"like\" top: \"y\" crop_param "
         "{ " +
         fields + " } }";
}

LayerInput like(const Shape& shape) { return {.name = "like", .shape = shape, .gradient = false}; }

const std::vector<LayerCase> kCases = {
    {.name = "known_values",
     .layer = layer("offset: 0 offset: 1"),
     .inputs = {{"x", {1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}}, like({1, 1, 2, 2})},
     .expect = {{"y", {2, 3, 5, 6}}},
     .top_gradients = {{"y", {1, 2, 3, 4}}},
     .expect_gradients = {{"x", {0, 1, 2, 0, 3, 4}}}},
    {.name = "channels_and_places",
     .layer = layer("axis: 1 offset: 1 offset: 0 offset: 2"),
     .inputs = {{"x", {2, 4, 3, 5}}, like({2, 2, 3, 2})},
     .shapes = {{"y", {2, 2, 3, 2}}}},
    {.name = "other_leading_sizes",
     .layer = layer("offset: 1"),
     .inputs = {{"x", {2, 3, 4, 4}}, like({7, 5, 2, 3})},
     .shapes = {{"y", {2, 3, 2, 3}}}},
    {.name = "all_axes",
     .layer = layer("axis: 0"),
     .inputs = {{"x", {3, 4}}, like({2, 2})},
     .shapes = {{"y", {2, 2}}}},
};
INSTANTIATE_TEST_SUITE_P(Crop, LayerCases, testing::ValuesIn(kCases), case_name);

TEST(CropErrors, NameTheNumbers) {
  const auto bad = [](const std::string& fields, const Shape& shape, const std::string& text) {
    expect_error(
        {.name = "bad", .layer = layer(fields), .inputs = {{"x", {1, 2, 4, 4}}, like(shape)}},
        text);
  };
  bad("offset: 2", {1, 2, 2, 3},
      "offset: 2 and the 3 of bottom \"like\" reach beyond the 4 of bottom \"x\" along axis 3");
  bad("", {1, 2, 5, 4}, "offset: 0 and the 5");
  bad("offset: 1 offset: 1 offset: 1", {1, 2, 2, 2}, "offset: 3 values, but 1 or 2");
  bad("axis: 4", {1, 2, 2, 2}, "axis: 4 does not exist");
  bad("", {2, 2}, "must have as many axes");
}

}  // namespace
}  // namespace crema
