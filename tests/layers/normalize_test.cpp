// Normalize, SSD's and the face nets'.
#include <cmath>

#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& fields = "", const std::string& tops = "") {
  return "layer { name: \"l\" type: \"Normalize\" bottom: \"x\" top: \"y\" " + tops + fields + " }";
}
std::string ssd(const std::string& fields) { return layer("norm_param { " + fields + " }"); }
std::string face(const std::string& fields, const std::string& tops = "") {
  return layer("normalize_param { " + fields + " }", tops);
}

const LayerInput kPicture = {.name = "x", .shape = {1, 2, 1, 2}, .values = {3, 0, 4, 5}};
const float kNorm = std::sqrt(50.0f);

const std::vector<LayerCase> kSsd = {
    {.name = "whole_sample",
     .layer = ssd(""),
     .inputs = {kPicture},
     .params = {{2}},
     .expect = {{"y", {6 / kNorm, 0, 8 / kNorm, 10 / kNorm}}},
     .shapes = {{"y", {1, 2, 1, 2}}}},
    {.name = "each_position_and_channel",
     .layer = ssd("across_spatial: false channel_shared: false"),
     .inputs = {kPicture},
     .params = {{2, 3}},
     .expect = {{"y", {1.2f, 0, 2.4f, 3}}}},
    {.name = "pictures_per_position",
     .layer = ssd("across_spatial: false channel_shared: false scale_filler { value: 20 }"),
     .inputs = {{"x", {2, 3, 4, 5}}}},
    {.name = "pictures_shared_scale",
     .layer = ssd("across_spatial: false channel_shared: true"),
     .inputs = {{"x", {2, 3, 2, 3}}}},
    {.name = "pictures_whole",
     .layer = ssd("channel_shared: false"),
     .inputs = {{"x", {2, 3, 2, 3}}}},
    {.name = "two_axes", .layer = ssd("across_spatial: false"), .inputs = {{"x", {3, 4}}}},
};
INSTANTIATE_TEST_SUITE_P(SsdNormalize, LayerCases, testing::ValuesIn(kSsd), case_name);

const std::vector<LayerCase> kFace = {
    {.name = "no_field",
     .layer = layer(),
     .inputs = {{"x", {1, 2}, {3, 4}}},
     .expect = {{"y", {0.6f, 0.8f}}}},
    {.name = "norm_top",
     .layer = face("bp_norm: true", "top: \"norm\" "),
     .inputs = {{"x", {2, 3, 2, 2}}},
     .shapes = {{"norm", {2, 1, 2, 2}}}},
    {.name = "l1",
     .layer = face("normalize_type: \"L1\"", "top: \"norm\" "),
     .inputs = {{"x", {1, 2}, {3, -4}}},
     .expect = {{"y", {3 / 7.0f, -4 / 7.0f}}, {"norm", {7}}},
     .no_loss = {"norm"}},
    {.name = "l1_drawn",
     .layer = face("normalize_type: \"L1\" bp_norm: true", "top: \"norm\" "),
     .inputs = {{.name = "x", .shape = {2, 4, 3}, .draw = Draw::distinct}}},
};
INSTANTIATE_TEST_SUITE_P(FaceNormalize, LayerCases, testing::ValuesIn(kFace), case_name);

TEST(Normalize, FormsHaveTheirParameters) {
  EXPECT_EQ(run_layer({.layer = ssd(""), .inputs = {{"x", {2, 3}}}}).params.size(), 1U);
  EXPECT_EQ(run_layer({.layer = face(""), .inputs = {{"x", {2, 3}}}}).params.size(), 0U);
}

TEST(Normalize, Refusals) {
  const std::vector<LayerInput> inputs = {{"x", {2, 3}}};
  expect_error({.layer = ssd("eps: -1"), .inputs = inputs}, "eps: must not be negative, got -1");
  expect_error({.layer = ssd(""), .inputs = {{"x", {3}}}}, "needs a channel axis");
  expect_error({.layer = face("normalize_type: \"L3\""), .inputs = inputs},
               "normalize_type: \"L3\" must be \"L1\" or \"L2\"");
  expect_error({.layer = face("fix_gradient: true"), .inputs = inputs},
               "fix_gradient: true is not supported");
}

}  // namespace
}  // namespace crema
