// Dropout: how much is kept, the same mask in backward, nothing in TEST.
#include <algorithm>
#include <cmath>

#include "io/prototxt.h"
#include "layers/layer_harness.h"
#include "reference/reference.h"

namespace crema {
namespace {

std::string layer(float ratio, const std::string& more = "") {
  return str(
      "layer { name: \"l\" type: \"Dropout\" bottom: \"x\" top: \"y\" dropout_param { "
      "dropout_ratio: ",
      ratio, more, " } }");
}

const std::vector<LayerCase> kCases = {
    {.name = "train", .layer = layer(0.4f), .inputs = {{"x", {2, 3, 5, 7}}}, .in_place = true},
    {.name = "ratio_0", .layer = layer(0), .inputs = {{"x", {3, 5}}}, .in_place = true},
    {.name = "test",
     .layer = layer(0.4f),
     .inputs = {{"x", {2, 3, 2, 2}}},
     .phase = TEST,
     .in_place = true},
    {.name = "scaled_in_test_train",
     .layer = layer(0.4f, " scale_train: false"),
     .inputs = {{"x", {2, 3, 5, 7}}},
     .in_place = true},
    {.name = "scaled_in_test",
     .layer = layer(0.4f, " scale_train: false"),
     .inputs = {{"x", {2, 3, 2, 2}}},
     .phase = TEST,
     .in_place = true},
};
INSTANTIATE_TEST_SUITE_P(Dropout, LayerCases, testing::ValuesIn(kCases), case_name);

TEST(Dropout, KeepsTheFractionAndSendsGradientsThroughTheSameMask) {
  const std::vector<float> ones(20000, 1.0f);
  const LayerRun run = run_layer({.name = "many",
                                  .layer = layer(0.25f),
                                  .inputs = {{"x", {20, 10, 10, 10}, ones}},
                                  .top_gradients = {{"y", ones}}});
  const std::vector<float>& y = run.blobs.at("y");
  const auto kept =
      static_cast<double>(std::count_if(y.begin(), y.end(), [](float v) { return v > 0; }));
  EXPECT_NEAR(kept / 20000, 0.75, 0.02);
  EXPECT_NEAR(*std::max_element(y.begin(), y.end()), 1 / 0.75, 1e-5);
  EXPECT_EQ(run.gradients.at("x"), y);
}

TEST(Dropout, ScalesInTestWhereItDoesNotInTrain) {
  LayerCase test{.name = "scale_train",
                 .layer = layer(0.25f, " scale_train: false"),
                 .inputs = {{"x", {4, 8}, std::vector<float>(32, 2.0f)}},
                 .top_gradients = {{"y", std::vector<float>(32, 1.0f)}}};
  const std::vector<float> trained = run_layer(test).blobs.at("y");
  EXPECT_EQ(*std::max_element(trained.begin(), trained.end()), 2);
  EXPECT_EQ(*std::min_element(trained.begin(), trained.end()), 0);
  test.phase = TEST;
  const LayerRun tested = run_layer(test);
  EXPECT_EQ(tested.blobs.at("y"), std::vector<float>(32, 1.5f));
  EXPECT_EQ(tested.gradients.at("x"), std::vector<float>(32, 0.75f));
}

TEST(Dropout, DrawsAnewInEachForwardAndForEachSeed) {
  const auto two_draws = [](uint64_t seed) {
    NetParameter param;
    parse_text(R"(layer { name: "d" type: "Input" top: "x" input_param { shape { dim: 1000 } } })" +
                   layer(0.5f),
               "net", &param);
    NetOptions options;
    options.phase = TRAIN;
    options.keep_all = true;
    options.log = false;
    options.seed = seed;
    Net net(param, options, make_reference_ops());
    net.set_blob("x", std::vector<float>(1000, 1.0f));
    net.forward();
    const std::vector<float> first = net.blob_values("y");
    net.forward();
    return std::pair(first, net.blob_values("y"));
  };
  const auto [first, second] = two_draws(1);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, two_draws(1).first);
  EXPECT_NE(first, two_draws(2).first);
}

std::string spatial(const std::string& fields = "spatial_dropout_param { dropout_ratio: 0.25 }") {
  return "layer { name: \"l\" type: \"SpatialDropout\" bottom: \"x\" top: \"y\" " + fields + " }";
}

const std::vector<LayerCase> kSpatial = {
    {.name = "train", .layer = spatial(), .inputs = {{"x", {2, 3, 5, 7}}}, .in_place = true},
    {.name = "rows", .layer = spatial(), .inputs = {{"x", {3, 5}}}},
    {.name = "test",
     .layer = spatial(),
     .inputs = {{"x", {2, 3, 2, 2}}},
     .phase = TEST,
     .in_place = true},
};
INSTANTIATE_TEST_SUITE_P(SpatialDropout, LayerCases, testing::ValuesIn(kSpatial), case_name);

TEST(SpatialDropout, KeepsOrDropsWholePlanes) {
  const std::vector<float> ones(20000, 1.0f);
  for (const char* fields :
       {"spatial_dropout_param { dropout_ratio: 0.25 }", "dropout_param { dropout_ratio: 0.25 }"}) {
    const LayerRun run = run_layer({.name = "many",
                                    .layer = spatial(fields),
                                    .inputs = {{"x", {50, 40, 2, 5}, ones}},
                                    .top_gradients = {{"y", ones}}});
    const std::vector<float>& y = run.blobs.at("y");
    int kept = 0;
    for (size_t plane = 0; plane < 2000; ++plane) {
      kept += y[10 * plane] > 0;
      for (size_t i = 0; i < 10; ++i) {
        EXPECT_EQ(y[10 * plane + i], y[10 * plane]);
        EXPECT_TRUE(y[10 * plane] == 0 || std::abs(y[10 * plane] - 1 / 0.75) < 1e-5);
      }
    }
    EXPECT_NEAR(kept / 2000.0, 0.75, 0.05);
    EXPECT_EQ(run.gradients.at("x"), y);
  }
}

TEST(DropoutErrors, SpatialRatioOutOfRange) {
  expect_error({.layer = spatial("dropout_param { dropout_ratio: 1 }"), .inputs = {{"x", {2, 3}}}},
               "dropout_ratio: must be");
  expect_error({.layer = spatial(), .inputs = {{"x", {3}}}}, "must have at least 2 axes");
}

TEST(DropoutErrors, RatioOutOfRange) {
  expect_error({.name = "bad", .layer = layer(1), .inputs = {{"x", {2, 3}}}},
               "dropout_ratio: must be");
  expect_error({.name = "bad", .layer = layer(-0.5f), .inputs = {{"x", {2, 3}}}},
               "dropout_ratio: must be");
}

TEST(Reports, B57_DropoutInPlaceLeavesConstantDataAlone) {
  NetParameter param;
  parse_text(R"(
      layer { name: "d" type: "DummyData" top: "x"
              dummy_data_param { shape { dim: 50 } data_filler { value: 1 } } }
      layer { name: "l" type: "Dropout" bottom: "x" top: "x" })",
             "net", &param);
  NetOptions options;
  options.phase = TRAIN;
  options.log = false;
  Net net(param, options, make_reference_ops());
  for (int i = 0; i < 6; ++i) {
    net.forward();
    for (const float v : net.blob_values("x"))
      EXPECT_TRUE(v == 0 || v == 2) << v << " in iteration " << i;
  }
}

}  // namespace
}  // namespace crema
