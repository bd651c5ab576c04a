// Weights of BatchNorm: 3 parameters and a Scale layer, or all 5 in one (NVCaffe), in files and
// nets.
#include "net/batch_norm_weights.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/prototxt.h"
#include "net/net.h"

namespace crema {
namespace {

using Values = std::vector<std::vector<float>>;

std::string norm_layer(const std::string& fields = "") {
  return "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 2 } } } "
         "layer { name: 'bn' type: 'BatchNorm' bottom: 'x' top: 'x' batch_norm_param { " +
         fields + " } } ";
}
const std::string kScale =
    "layer { name: 'scale' type: 'Scale' bottom: 'x' top: 'x' scale_param { bias_term: true } } ";

HostBlob blob(const std::vector<float>& values) {
  return {.shape = {static_cast<int64_t>(values.size())}, .data = values, .diff = {}};
}

LayerWeights weights(const std::string& name, const std::string& type, const Values& values) {
  LayerWeights layer{.name = name, .type = type, .bottoms = {"x"}, .tops = {"x"}, .blobs = {}};
  for (const std::vector<float>& one : values) layer.blobs.push_back(blob(one));
  return layer;
}
const Values kStatistics = {{1, 2}, {3, 4}, {5}}, kAffine = {{6, 7}, {8, 9}};
const Values kAll = {{1, 2}, {3, 4}, {5}, {6, 7}, {8, 9}};

/// All parameters of the net after loading.
Values loaded(const std::string& text, const std::vector<LayerWeights>& layers) {
  NetParameter param;
  parse_text(text, "net", &param);
  NetOptions options;
  options.log = false;
  Net net(param, options, make_ops({}));
  net.load_weights({.net_name = "", .layers = layers}, "file");
  Values out;
  for (size_t i = 0; i < net.params().size(); ++i) {
    out.push_back(net.param_values(static_cast<int>(i)));
  }
  return out;
}

TEST(BatchNormWeights, FillersStandWithoutAFile) {
  EXPECT_EQ(loaded(norm_layer("scale_bias: true scale_filler { type: 'constant' value: 4 } "
                              "bias_filler { type: 'constant' value: -3 }"),
                   {}),
            (Values{{0, 0}, {0, 0}, {0}, {4, 4}, {-3, -3}}));
}

TEST(BatchNormWeights, FiveIntoFive) {
  EXPECT_EQ(loaded(norm_layer("scale_bias: true"), {weights("bn", "BatchNorm", kAll)}), kAll);
}

TEST(BatchNormWeights, TheEarlyOrderIsToldByTheShapes) {
  const Values early = {{6, 7}, {8, 9}, {1, 2}, {3, 4}, {5}};
  EXPECT_EQ(loaded(norm_layer("scale_bias: true"), {weights("bn", "BatchNorm", early)}), kAll);
  EXPECT_EQ(loaded(norm_layer() + kScale, {weights("bn", "BatchNorm", early)}), kAll);
}

TEST(BatchNormWeights, FiveIntoANormAndAScale) {
  EXPECT_EQ(loaded(norm_layer() + kScale, {weights("bn", "BatchNorm", kAll)}), kAll);
}

TEST(BatchNormWeights, AScaleThatTheFileHasIsNotOverwritten) {
  try {
    loaded(norm_layer() + kScale,
           {weights("bn", "BatchNorm", kAll), weights("scale", "Scale", kAffine)});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "file: layer \"bn\": the file has 5 parameters, the net has 3; batch_norm_param { "
                 "scale_bias: true } has 5");
  }
}

TEST(BatchNormWeights, ThreeIntoFive) {
  const Values with_fillers = {{1, 2}, {3, 4}, {5}, {1, 1}, {0, 0}};
  const std::string net = norm_layer("scale_bias: true");
  EXPECT_EQ(loaded(net, {weights("bn", "BatchNorm", kStatistics)}), with_fillers);
  EXPECT_EQ(loaded(net, {weights("bn", "BatchNorm", kStatistics), weights("s", "Scale", kAffine)}),
            kAll);
  // What stands behind something else belongs to it; a file without edges tells nothing.
  EXPECT_EQ(loaded(net, {weights("bn", "BatchNorm", kStatistics), weights("r", "ReLU", {}),
                         weights("s", "Scale", kAffine)}),
            with_fillers);
  LayerWeights bare = weights("bn", "BatchNorm", kStatistics);
  bare.tops.clear();
  EXPECT_EQ(loaded(net, {bare, weights("s", "Scale", kAffine)}), with_fillers);
}

TEST(BatchNormWeights, AScaleOfTheNetTakesItsOwn) {
  EXPECT_EQ(loaded(norm_layer("scale_bias: true") + kScale,
                   {weights("bn", "BatchNorm", kStatistics), weights("scale", "Scale", kAffine)}),
            (Values{{1, 2}, {3, 4}, {5}, {1, 1}, {0, 0}, {6, 7}, {8, 9}}));
}

}  // namespace
}  // namespace crema
