// Input, DummyData, MemoryData, Parameter: layers without bottoms.
#include <algorithm>

#include "io/prototxt.h"
#include "io/scratch.h"
#include "layers/layer_harness.h"
#include "layers/memory_data.h"
#include "reference/reference.h"

namespace crema {
namespace {

std::string dummy(const std::string& fields, const std::string& tops = "top: \"y\"") {
  return "layer { name: \"d\" type: \"DummyData\" " + tops + " dummy_data_param { " + fields +
         " } }";
}

LayerCase dummy_case(const std::string& name, const std::string& fields, const Shape& shape,
                     const std::vector<float>& values) {
  LayerCase test{.name = name, .layer = dummy(fields), .shapes = {{"y", shape}}, .backward = false};
  test.expect["y"] = values;
  return test;
}

/// What a DummyData layer of 20 x 50 values makes in the given forward pass.
std::vector<float> dummy_values(const std::string& filler, int forwards = 1, uint64_t seed = 1) {
  NetParameter param;
  parse_text(dummy("shape { dim: 20 dim: 50 } data_filler { " + filler + " }"), "dummy", &param);
  NetOptions options;
  options.log = false;
  options.seed = seed;
  Net net(param, options, make_reference_ops());
  for (int i = 0; i < forwards; ++i) net.forward();
  return net.blob_values("y");
}

const std::vector<LayerCase> kDummyData = {
    dummy_case("constant_zero", "shape { dim: 2 dim: 3 }", {2, 3}, std::vector<float>(6, 0)),
    dummy_case("constant", "shape { dim: 2 } data_filler { value: 1.5 }", {2}, {1.5f, 1.5f}),
    dummy_case("legacy", "num: 1 channels: 2 height: 3 width: 1 data_filler { value: 1 }",
               {1, 2, 3, 1}, std::vector<float>(6, 1)),
    dummy_case("bilinear",
               "shape { dim: 1 dim: 1 dim: 3 dim: 3 } data_filler { type: \"bilinear\" }",
               {1, 1, 3, 3}, {.25f, .5f, .25f, .5f, 1, .5f, .25f, .5f, .25f}),
    {.name = "a_filler_and_a_shape_per_top",
     .layer =
         dummy("shape { dim: 1 } shape { dim: 2 } data_filler { value: 1 } data_filler { value: "
               "2 }",
               "top: \"y\" top: \"z\""),
     .expect = {{"y", {1}}, {"z", {2, 2}}},
     .backward = false},
};
INSTANTIATE_TEST_SUITE_P(DummyData, LayerCases, testing::ValuesIn(kDummyData), case_name);

const std::vector<LayerCase> kParameter = {
    {.name = "as_factor",
     .layer = "layer { name: \"p\" type: \"Parameter\" top: \"p\" parameter_param { shape { dim: 2 "
              "dim: 3 dim: 2 } } }"
              "layer { name: \"e\" type: \"Eltwise\" bottom: \"p\" bottom: \"x\" top: \"y\" "
              "eltwise_param { operation: PROD } }",
     .inputs = {{"x", {2, 3, 2}}}},
};
INSTANTIATE_TEST_SUITE_P(Parameter, LayerCases, testing::ValuesIn(kParameter), case_name);

TEST(DummyData, RandomFillers) {
  const std::vector<float> uniform = dummy_values("type: \"uniform\" min: 2 max: 3");
  const auto [low, high] = std::minmax_element(uniform.begin(), uniform.end());
  EXPECT_GE(*low, 2);
  EXPECT_LE(*high, 3);
  EXPECT_NEAR(*high - *low, 1, 0.02);

  double sum = 0, squares = 0, zeros = 0;
  for (const float v : dummy_values("type: \"gaussian\" mean: 1 std: 2")) {
    sum += v;
    squares += (v - 1) * (v - 1);
  }
  EXPECT_NEAR(sum / 1000, 1, 0.2);
  EXPECT_NEAR(squares / 1000, 4, 0.5);
  for (const float v : dummy_values("type: \"gaussian\" sparse: 5")) zeros += v == 0;
  EXPECT_NEAR(zeros / 1000, 0.75, 0.05);

  const std::vector<float> ball = dummy_values("type: \"positive_unitball\"");
  for (size_t row = 0; row < 20; ++row) {
    float total = 0;
    for (size_t i = 0; i < 50; ++i) total += ball[row * 50 + i];
    EXPECT_NEAR(total, 1, 1e-5);
  }
}

TEST(DummyData, DrawsAnewByForwardAndSeed) {
  for (const char* type : {"uniform", "gaussian", "xavier", "msra", "positive_unitball"}) {
    const std::string filler = str("type: \"", type, '"');
    EXPECT_EQ(dummy_values(filler), dummy_values(filler)) << type;
    EXPECT_NE(dummy_values(filler), dummy_values(filler, 2)) << type;
    EXPECT_NE(dummy_values(filler), dummy_values(filler, 1, 2)) << type;
  }
}

TEST(DummyData, Refusals) {
  expect_error(LayerCase{.layer = dummy("")}, "needs a shape");
  expect_error(LayerCase{.layer = dummy("shape { dim: 2 } num: 1")}, "exclude each other");
  expect_error(LayerCase{.layer = dummy("num: 1 channels: 1 height: 1")},
               "width: give 1 or one per top (1), not 0");
  expect_error(LayerCase{.layer = dummy("shape { dim: 0 }")},
               "every dim must be at least 1, not 0");
  expect_error(LayerCase{.layer = dummy("shape { dim: 1 } data_filler { } data_filler { }")},
               "data_filler: give 1 or one per top (1), not 2");
  expect_error(LayerCase{.layer = dummy("shape { dim: 1 } data_filler { type: \"xaver\" }")},
               "unknown filler type \"xaver\" (did you mean xavier?)");
}

/// Ones through an in-place Dropout: what was written into the constant must not stay.
LayerCase dropout_on_dummy() {
  return {.name = "B57",
          .layer = dummy("shape { dim: 4 dim: 25 } data_filler { value: 1 }") +
                   "layer { name: \"drop\" type: \"Dropout\" bottom: \"y\" top: \"y\" }",
          .phase = TRAIN,
          .backward = false};
}

TEST(Reports, B57_DropoutInPlaceOnConstantDummyData) {
  for (const bool planned : {false, true}) {
    for (int forwards = 1; forwards <= 6; ++forwards) {
      const LayerRun run =
          run_layer(dropout_on_dummy(), {.planned = planned, .forwards = forwards});
      for (const float v : run.blobs.at("y")) EXPECT_TRUE(v == 0 || v == 2) << v;
    }
  }
}

TEST(Reports, S09_ConstantDummyDataIsRefilled) {
  const LayerCase test{
      .name = "S09",
      .layer =
          dummy("shape { dim: 2 } data_filler { value: 3 }") +
          "layer { name: \"p\" type: \"Power\" bottom: \"y\" top: \"y\" power_param { scale: 2 } }",
      .backward = false};
  for (const bool planned : {false, true}) {
    const LayerRun run = run_layer(test, {.planned = planned, .forwards = 4});
    EXPECT_EQ(run.blobs.at("y"), (std::vector<float>{6, 6}));
  }
}

TEST(Input, Refusals) {
  expect_error(LayerCase{.layer = "layer { name: \"i\" type: \"Input\" top: \"y\" }"},
               "input_param: needs a shape");
  expect_error(
      LayerCase{.layer =
                    "layer { name: \"i\" type: \"Input\" top: \"y\" input_param { shape { dim: 1 "
                    "} shape { dim: 2 } } }"},
      "input_param: give 1 shape or one per top (1), not 2");
}

TEST(Input, OneShapeForAllTops) {
  const LayerCase test{.name = "input",
                       .layer =
                           "layer { name: \"i\" type: \"Input\" top: \"y\" top: \"z\" input_param "
                           "{ shape { dim: 2 dim: 3 } } }",
                       .backward = false};
  EXPECT_EQ(run_layer(test).shapes.at("z"), (Shape{2, 3}));
}

const std::string kMemoryData =
    "layer { name: \"m\" type: \"MemoryData\" top: \"x\" top: \"t\" memory_data_param { "
    "batch_size: 2 "
    "channels: 1 height: 1 width: 2 } }";

TEST(MemoryData, HandsOutBatches) {
  NetParameter param;
  LayerParameter* layer = param.add_layer();
  layer->set_name("m");
  layer->set_type("MemoryData");
  layer->add_top("x");
  layer->add_top("t");
  MemoryDataParameter* memory = layer->mutable_memory_data_param();
  memory->set_batch_size(2);
  memory->set_channels(1);
  memory->set_height(1);
  memory->set_width(2);
  NetOptions options;
  options.log = false;
  Net net(param, options, make_reference_ops());
  auto& data = dynamic_cast<MemoryDataLayer&>(*net.find_layer("m"));
  data.set_values({1, 2, 3, 4, 5, 6, 7, 8}, {0, 1, 2, 3});
  EXPECT_EQ(net.blob_shape("x"), (Shape{2, 1, 1, 2}));
  const std::vector<std::vector<float>> batches = {{1, 2, 3, 4}, {5, 6, 7, 8}, {1, 2, 3, 4}};
  for (const std::vector<float>& batch : batches) {
    net.forward();
    EXPECT_EQ(net.blob_values("x"), batch);
  }
  EXPECT_EQ(net.blob_values("t"), (std::vector<float>{0, 1}));
  EXPECT_THROW(data.set_values({1, 2}, {0}), Error) << "not a whole batch";
  EXPECT_THROW(data.set_values({1, 2, 3}, {0, 1}), Error) << "a value is missing";
}

TEST(MemoryData, SaysThatNothingIsTransformed) {
  NetParameter param;
  parse_text(kMemoryData, "f", &param);
  param.mutable_layer(0)->mutable_transform_param()->set_scale(2);
  NetOptions options;
  options.log = false;
  const LogLines log;
  const Net net(param, options, make_reference_ops());
  EXPECT_EQ(log.lines,
            std::vector<std::string>{"layer \"m\" (MemoryData): transform_param is not applied: "
                                     "values are taken as they are given"});
}

TEST(MemoryData, Refusals) {
  expect_error(LayerCase{.layer = kMemoryData, .backward = false}, "(MemoryData): has no data");
  expect_error(
      LayerCase{.layer = "layer { name: \"m\" type: \"MemoryData\" top: \"x\" top: \"t\" }"},
      "batch_size, channels, height and width must all be given");
}

TEST(Parameter, Refusals) {
  expect_error(
      LayerCase{.layer =
                    "layer { name: \"p\" type: \"Parameter\" top: \"y\" parameter_param { shape { "
                    "dim: 3 dim: -1 } } }"},
      "every dim must be at least 1, not -1");
}

}  // namespace
}  // namespace crema
