// Upsample, ROIPooling, PSROIPooling, Interp, Axpy.
#include "layers/layer_harness.h"

namespace crema {
namespace {

LayerInput fixed(const std::string& name, const Shape& shape, const std::vector<float>& values) {
  return {.name = name, .shape = shape, .values = values, .gradient = false};
}
std::vector<float> counted(int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
  return values;
}

std::string unpool(const std::string& fields) {
  return "layer { name: \"l\" type: \"Upsample\" bottom: \"x\" bottom: \"mask\" top: \"y\" "
         "upsample_param { " +
         fields + " } }";
}
std::string nearest(const std::string& fields) {
  return "layer { name: \"l\" type: \"Upsample\" bottom: \"x\" top: \"y\" upsample_param { " +
         fields + " } }";
}

const std::vector<LayerCase> kUpsample = {
    {.name = "places_of_the_mask",
     .layer = unpool("upsample_h: 2 upsample_w: 2"),
     .inputs = {{"x", {1, 2, 1, 2}, {5, 7, 8, 9}}, fixed("mask", {1, 2, 1, 2}, {3, 0, 1, 2})},
     .expect = {{"y", {7, 0, 0, 5, 0, 8, 9, 0}}},
     .top_gradients = {{"y", {1, 2, 3, 4, 5, 6, 7, 8}}},
     .expect_gradients = {{"x", {4, 1, 6, 7}}}},
    {.name = "back_through_a_pooling",
     .layer = "layer { name: \"p\" type: \"Pooling\" bottom: \"in\" top: \"x\" top: \"mask\" "
              "pooling_param { kernel_size: 2 stride: 2 } } " +
              unpool(""),
     .inputs = {{.name = "in", .shape = {2, 3, 4, 6}, .draw = Draw::distinct}},
     .shapes = {{"y", {2, 3, 4, 6}}},
     .step = 1e-3f},
    {.name = "odd_sizes",
     .layer = unpool("scale: 2 pad_out_h: true"),
     .inputs = {{"x", {1, 1, 2, 2}, {1, 2, 3, 4}}, fixed("mask", {1, 1, 2, 2}, {0, 2, 9, 11})},
     .expect = {{"y", {1, 0, 2, 0, 0, 0, 0, 0, 0, 3, 0, 4}}},
     .shapes = {{"y", {1, 1, 3, 4}}}},
    {.name = "nearest",
     .layer = nearest("scale: 2"),
     .inputs = {{"x", {1, 1, 1, 2}, {1, 2}}},
     .expect = {{"y", {1, 1, 2, 2, 1, 1, 2, 2}}},
     .top_gradients = {{"y", {1, 2, 3, 4, 5, 6, 7, 8}}},
     .expect_gradients = {{"x", {14, 22}}}},
    {.name = "nearest_pictures", .layer = nearest("scale: 3"), .inputs = {{"x", {2, 3, 2, 4}}}},
};
INSTANTIATE_TEST_SUITE_P(Upsample, LayerCases, testing::ValuesIn(kUpsample), case_name);

std::string pooling(const std::string& type, const std::string& fields) {
  return "layer { name: \"l\" type: \"" + type + "\" bottom: \"x\" bottom: \"rois\" top: \"y\" " +
         fields + " }";
}
std::string roi(const std::string& fields) {
  return pooling("ROIPooling", "roi_pooling_param { " + fields + " }");
}
std::string psroi(const std::string& fields) {
  return pooling("PSROIPooling", "psroi_pooling_param { " + fields + " }");
}

const std::vector<LayerCase> kRoi = {
    {.name = "whole_plane",
     .layer = roi("pooled_h: 2 pooled_w: 2"),
     .inputs = {{"x", {1, 1, 4, 4}, counted(16)}, fixed("rois", {1, 5}, {0, 0, 0, 3, 3})},
     .expect = {{"y", {5, 7, 13, 15}}},
     .shapes = {{"y", {1, 1, 2, 2}}}},
    // Cells 1..3 by 1..3: bins of 1.5 cells, [1, 3) and [2, 4).
    {.name = "scaled_bins_overlap",
     .layer = roi("pooled_h: 2 pooled_w: 2 spatial_scale: 0.5"),
     .inputs = {{"x", {1, 1, 4, 4}, counted(16)}, fixed("rois", {1, 5}, {0, 2, 2, 6, 6})},
     .expect = {{"y", {10, 11, 14, 15}}},
     .top_gradients = {{"y", {1, 2, 3, 4}}},
     .expect_gradients = {{"x", {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4}}}},
    {.name = "outside_is_empty",
     .layer = roi("pooled_h: 1 pooled_w: 2"),
     .inputs = {{"x", {1, 1, 2, 2}, {-1, -2, -3, -4}}, fixed("rois", {1, 5}, {0, 1, 0, 4, 1})},
     .expect = {{"y", {-2, 0}}}},
    {.name = "inverted_region_is_one_cell",
     .layer = roi("pooled_h: 1 pooled_w: 1"),
     .inputs = {{"x", {1, 1, 2, 2}, counted(4)}, fixed("rois", {1, 5}, {0, 1, 1, 0, 0})},
     .expect = {{"y", {3}}}},
    {.name = "pictures",
     .layer = roi("pooled_h: 3 pooled_w: 2 spatial_scale: 0.25"),
     .inputs = {{.name = "x", .shape = {2, 3, 6, 5}, .draw = Draw::distinct},
                fixed("rois", {3, 5}, {1, 0, 0, 19, 22, 0, 3, 5, 12, 16, 1, 8, 8, 9, 30})},
     .step = 1e-3f},
};
INSTANTIATE_TEST_SUITE_P(ROIPooling, LayerCases, testing::ValuesIn(kRoi), case_name);

const std::vector<LayerCase> kPsRoi = {
    {.name = "each_bin_its_channel",
     .layer = psroi("spatial_scale: 1 output_dim: 1 group_size: 2"),
     .inputs = {{"x", {1, 4, 2, 2}, counted(16)}, fixed("rois", {1, 5}, {0, 0, 0, 1, 1})},
     .expect = {{"y", {0, 5, 10, 15}}},
     .shapes = {{"y", {1, 1, 2, 2}}}},
    {.name = "means",
     .layer = psroi("spatial_scale: 0.5 output_dim: 2 group_size: 1"),
     .inputs = {{"x", {1, 2, 2, 2}, counted(8)}, fixed("rois", {1, 5}, {0, 0, 0, 3, 1})},
     .expect = {{"y", {0.5f, 4.5f}}},
     .top_gradients = {{"y", {2, 4}}},
     .expect_gradients = {{"x", {1, 1, 0, 0, 2, 2, 0, 0}}}},
    {.name = "pictures",
     .layer = psroi("spatial_scale: 0.25 output_dim: 2 group_size: 3"),
     .inputs = {{"x", {2, 18, 6, 5}},
                fixed("rois", {3, 5}, {1, 0, 0, 19, 22, 0, 3, 5, 12, 16, 1, 40, 40, 50, 50})}},
};
INSTANTIATE_TEST_SUITE_P(PSROIPooling, LayerCases, testing::ValuesIn(kPsRoi), case_name);

std::string interp(const std::string& fields) {
  return "layer { name: \"l\" type: \"Interp\" bottom: \"x\" top: \"y\" interp_param { " + fields +
         " } }";
}
const std::vector<LayerCase> kInterp = {
    {.name = "corners_stay",
     .layer = interp("height: 3 width: 3"),
     .inputs = {{"x", {1, 1, 2, 2}, {1, 2, 3, 4}}},
     .expect = {{"y", {1, 1.5f, 2, 2, 2.5f, 3, 3, 3.5f, 4}}},
     .top_gradients = {{"y", {1, 2, 4, 0, 8, 0, 0, 0, 0}}},
     .expect_gradients = {{"x", {4, 7, 2, 2}}}},
    {.name = "zoom",
     .layer = interp("zoom_factor: 2"),
     .inputs = {{"x", {1, 1, 2, 2}, {1, 2, 3, 4}}},
     .expect = {{"y", {1, 1.5f, 2, 2, 2.5f, 3, 3, 3.5f, 4}}}},
    {.name = "shrink",
     .layer = interp("shrink_factor: 2"),
     .inputs = {{"x", {1, 1, 1, 5}, {1, 2, 3, 4, 5}}},
     .expect = {{"y", {1, 3, 5}}}},
    {.name = "borders_cut_off",
     .layer = interp("pad_beg: -1 pad_end: -1 height: 1 width: 3"),
     .inputs = {{"x", {1, 1, 3, 4}, counted(12)}},
     .expect = {{"y", {5, 5.5f, 6}}}},
    {.name = "pictures",
     .layer = interp("height: 7 width: 5"),
     .inputs = {{"x", {2, 3, 4, 3}}},
     .shapes = {{"y", {2, 3, 7, 5}}}},
    {.name = "smaller", .layer = interp("height: 2 width: 3"), .inputs = {{"x", {2, 2, 5, 7}}}},
};
INSTANTIATE_TEST_SUITE_P(Interp, LayerCases, testing::ValuesIn(kInterp), case_name);

const std::string kAxpy =
    "layer { name: \"l\" type: \"Axpy\" bottom: \"s\" bottom: \"x\" bottom: \"z\" top: \"y\" }";
const std::vector<LayerCase> kAxpyCases = {
    {.name = "known_values",
     .layer = kAxpy,
     .inputs = {{"s", {1, 2}, {2, 3}},
                {"x", {1, 2, 1, 2}, {1, 2, 3, 4}},
                {"z", {1, 2, 1, 2}, {10, 20, 30, 40}}},
     .expect = {{"y", {12, 24, 39, 52}}},
     .top_gradients = {{"y", {1, 2, 3, 4}}},
     .expect_gradients = {{"s", {5, 25}}, {"x", {2, 4, 9, 12}}, {"z", {1, 2, 3, 4}}}},
    {.name = "pictures",
     .layer = kAxpy,
     .inputs = {{"s", {2, 3, 1, 1}}, {"x", {2, 3, 4, 5}}, {"z", {2, 3, 4, 5}}}},
};
INSTANTIATE_TEST_SUITE_P(Axpy, LayerCases, testing::ValuesIn(kAxpyCases), case_name);

TEST(RegionLayers, Refusals) {
  const LayerInput x = {"x", {1, 4, 2, 2}};
  const auto bad = [&](const std::string& text, const LayerInput& other, const std::string& what) {
    std::vector<LayerInput> inputs = {x};
    if (!other.name.empty()) inputs.push_back(other);
    expect_error({.layer = text, .inputs = inputs}, what);
  };
  const LayerInput mask = fixed("mask", {1, 4, 2, 2}, std::vector<float>(16, 16.0f));
  bad(unpool(""), mask, "place 16 in the mask must be in 0..15");
  bad(unpool("upsample_h: 4"), mask, "upsample_h and upsample_w must be given together");
  bad(unpool(""), fixed("mask", {1, 4, 2, 1}, counted(8)), "is the mask: it must have the shape");
  bad(nearest("upsample_h: 4"), {}, "need a second bottom, the pooling's mask");
  bad(nearest("scale: 0"), {}, "scale: must be at least 1");
  const LayerInput rois = fixed("rois", {1, 5}, {1, 0, 0, 1, 1});
  bad(roi("pooled_h: 2"), rois, "pooled_h and pooled_w: must be at least 1");
  bad(roi("pooled_h: 1 pooled_w: 1"), rois, "picture 1 of region 0 must be in 0..0");
  bad(roi("pooled_h: 1 pooled_w: 1"), fixed("rois", {1, 4}, counted(4)),
      "bottom \"rois\" of shape 1 4 must hold regions, 5 numbers each");
  bad(psroi("spatial_scale: 1 output_dim: 2 group_size: 2"), rois,
      "bottom \"x\" has 4 channels, but output_dim * group_size^2 are 8");
  bad(psroi("output_dim: 1 group_size: 2"), rois, "spatial_scale: missing");
  bad(psroi("spatial_scale: 1 output_dim: 1 group_size: 2"), rois,
      "picture 1 of region 0 must be in 0..0");
  bad(interp(""), {}, "needs height and width, zoom_factor or shrink_factor");
  bad(interp("height: 3"), {}, "height and width: must be given together");
  bad(interp("pad_beg: 1 zoom_factor: 2"), {}, "only cropping (0 or below) is supported");
  bad(interp("pad_beg: -2 zoom_factor: 2"), {}, "2 are cut off, but bottom \"x\" is 2 x 2");
  expect_error({.layer = kAxpy, .inputs = {{"s", {1, 3}}, {"x", {1, 2, 2}}, {"z", {1, 2, 2}}}},
               "bottom \"s\" of shape 1 3 must hold one scale for each of the 1 x 2 channels");
}

}  // namespace
}  // namespace crema
