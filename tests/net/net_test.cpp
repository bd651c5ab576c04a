// Net as a whole: what it makes of loss weights on shared memory, and which record it names for a
// bad label.
#include "net/net.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_folder.h"
#include "feed/feed.h"
#include "io/hdf5.h"
#include "io/prototxt.h"
#include "io/scratch.h"

namespace crema {
namespace {

std::unique_ptr<Net> make_net(const std::string& text) {
  NetParameter param;
  parse_text(text, "net", &param);
  NetOptions options;
  options.phase = TRAIN;
  options.train = true;
  options.log = false;
  return std::make_unique<Net>(param, options, make_ops({}));
}

TEST(Net, LossWeightsOfBlobsInOneMemoryAddUp) {
  const auto net = make_net(R"(
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'h' loss_weight: 2
      inner_product_param { num_output: 4 } }
    layer { name: 'r' type: 'Reshape' bottom: 'h' top: 'r' loss_weight: 3
      reshape_param { shape { dim: 8 } } })");
  net->set_blob("x", std::vector<float>(6, 1.0F));
  net->forward();
  net->backward();
  EXPECT_EQ(net->param_gradient(1), std::vector<float>(4, 2 * 5.0F));
}

TEST(Net, AnInputThatALayerWorksOnInPlaceIsSetAndHasItsGradient) {
  const auto net = make_net(R"(force_backward: true
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 } } }
    layer { name: 'p' type: 'Power' bottom: 'x' top: 'x' power_param { scale: 3 } }
    layer { name: 'r' type: 'Reduction' bottom: 'x' top: 's' loss_weight: 1 })");
  net->set_blob("x", {1, 2});
  EXPECT_EQ(net->forward(), 9);
  net->backward();
  EXPECT_TRUE(net->wants_gradient("x"));
  EXPECT_EQ(net->blob_gradient("x"), (std::vector<float>{3, 3}));
}

TEST(Net, ALossWithoutTopIsNoOutput) {
  const auto net = make_net(R"(
    layer { name: 'x' type: 'Input' top: 'x' top: 't' input_param { shape { dim: 2 } } }
    layer { name: 'a' type: 'EuclideanLoss' bottom: 'x' bottom: 't' }
    layer { name: 'b' type: 'EuclideanLoss' bottom: 'x' bottom: 't' loss_weight: 2 })");
  net->set_blob("x", {1, 3});
  EXPECT_EQ(net->forward(), 3 * 2.5F);
  EXPECT_TRUE(net->outputs().empty());
  EXPECT_EQ(net->blob_names(), (std::vector<std::string>{"x", "t"}));
}

TEST(Net, OfLayersWithOneNameTheOneWithParametersIsMeant) {
  const auto net = make_net(R"(
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 2 } } }
    layer { name: 'ip' type: 'Power' bottom: 'x' top: 'p' }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'p' top: 'y'
      inner_product_param { num_output: 1 bias_term: false } })");
  const int index = net->layer_index("ip");
  EXPECT_EQ(net->param_of(index, 0), 0);
  EXPECT_EQ(net->param_of(index, 1), -1);
  EXPECT_EQ(net->param_of(index, -1), -1);
  HostBlob blob;
  blob.shape = {1, 2};
  blob.data = {5, 7};
  WeightsFile weights;
  weights.layers.emplace_back();
  weights.layers[0].name = "ip";
  weights.layers[0].blobs = {blob};
  EXPECT_EQ(net->load_weights(weights, "file"), 1);
  net->set_blob("x", {1, 1});
  net->forward();
  EXPECT_EQ(net->blob_values("y"), std::vector<float>{12});
  EXPECT_EQ(net->saved_blobs(1, false, false).size(), 0u);
  EXPECT_EQ(net->saved_blobs(2, false, false).size(), 1u);
}

/// A net of two layers that learn, one file.
std::vector<std::string> lines_of_loading(const std::vector<LayerWeights>& layers) {
  const auto net = make_net(R"(
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 2 } } }
    layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'a'
      inner_product_param { num_output: 1 bias_term: false } }
    layer { name: 'b' type: 'InnerProduct' bottom: 'a' top: 'b'
      inner_product_param { num_output: 2 bias_term: false } })");
  const LogLines log;
  net->load_weights({.net_name = "", .layers = layers}, "w");
  return log.lines;
}

LayerWeights layer_weights(const std::string& name, const Shape& shape) {
  LayerWeights layer;
  layer.name = name;
  if (shape.axes() > 0) {
    layer.blobs = {HostBlob{shape, std::vector<float>(static_cast<size_t>(shape.count())), {}}};
  }
  return layer;
}

TEST(Net, AFillerOfAForkDoesNotMatterWhereNothingIsTrained) {
  const std::string text = R"(
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 2 } } }
    layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'a'
      inner_product_param { num_output: 1 weight_filler { type: 'identity' std: 2 } } })";
  EXPECT_NE(error_of([&] { make_net(text); }).find("unknown filler type \"identity\""),
            std::string::npos);
  NetParameter param;
  parse_text(text, "net", &param);
  NetOptions options;
  options.log = false;
  const LogLines log;
  const Net net(param, options, make_ops({}));
  EXPECT_EQ(log.lines, std::vector<std::string>{
                           "net:3: layer \"a\" (InnerProduct): filler \"identity\" is not "
                           "built in: parameter 0 is 0 unless weights are loaded"});
  EXPECT_EQ(net.param_values(0), (std::vector<float>{0, 0}));
}

TEST(LoadWeights, TellsHowManyLayersWereFilled) {
  const auto a = layer_weights("a", {1, 2}), b = layer_weights("b", {2, 1});
  EXPECT_TRUE(lines_of_loading({a, b}).empty());
  EXPECT_EQ(lines_of_loading({a}),
            (std::vector<std::string>{
                "w: fills 1 of the 2 layers with parameters; left as they were: b"}));
  EXPECT_EQ(lines_of_loading({layer_weights("a", {}), layer_weights("b", {})}),
            (std::vector<std::string>{"w: fills 0 of the 2 layers with parameters; left as they "
                                      "were: a, b; the file's layers hold no values"}));
  EXPECT_EQ(lines_of_loading({layer_weights("c", {3})}),
            (std::vector<std::string>{"Ignoring source layer c",
                                      "w: fills 0 of the 2 layers with parameters; left as they "
                                      "were: a, b; no layer has a name of the net's"}));
}

TEST(Reports, B63_StatisticsWithAFactorOfZeroAreWarnedAbout) {
  const auto net = make_net(R"(
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 2 dim: 1 } } }
    layer { name: 'bn' type: 'BatchNorm' bottom: 'x' top: 'y' })");
  WeightsFile weights;
  weights.layers.resize(1);
  weights.layers[0].name = "bn";
  const auto blob = [](const Shape& shape, const std::vector<float>& values) {
    HostBlob result;
    result.shape = shape;
    result.data = values;
    return result;
  };
  weights.layers[0].blobs = {blob({2}, {1, 2}), blob({2}, {3, 4}), blob({1}, {0})};
  {
    const LogLines log;
    EXPECT_EQ(net->load_weights(weights, "w"), 1);
    ASSERT_EQ(log.lines.size(), 1U);
    EXPECT_EQ(log.lines[0].find("w: layer \"bn\": the factor of the statistics (parameter 2) is 0"),
              0U)
        << log.lines[0];
  }
  for (float* value : {&weights.layers[0].blobs[2].data[0], &weights.layers[0].blobs[1].data[0]}) {
    const LogLines log;
    const float before = *value;
    *value = before == 0 ? 1.0F : 0.0F;  // a factor of 1; then a variance of 0 beside it
    net->load_weights(weights, "w");
    EXPECT_TRUE(log.lines.empty());
  }
  weights.layers[0].blobs.push_back(blob({2}, {1, 1}));
  weights.layers[0].blobs.push_back(blob({2}, {0, 0}));
  const std::string text = error_of([&] { net->load_weights(weights, "w"); });
  EXPECT_NE(text.find("the file has 5 parameters, the net has 3"), std::string::npos) << text;
}

/// The error for labels 2 x 1 x 2 x 2 of which one, at flat place `bad`, is out of range. Scores
/// come from data layer d, labels from data layer `labels_from`.
std::string error_of_label(int bad, const std::string& labels_from = "d") {
  const TestFolder folder;
  const std::string file = folder / "labels.h5", list = folder / "labels.txt";
  std::vector<float> scores(2 * 3 * 4, 0.5F), labels(8, 1.0F);
  labels[static_cast<size_t>(bad)] = 7;
  Hdf5File out = Hdf5File::create(file);
  out.write("data", {2, 3, 2, 2}, scores.data());
  out.write("label", {2, 1, 2, 2}, labels.data());
  out.close();
  write_file(list, file + "\n");
  const std::string param = str(" hdf5_data_param { source: '", list, "' batch_size: 2 } } ");
  const std::string own =
      labels_from == "d" ? "" : str(param, "layer { name: '", labels_from, "' type: 'HDF5Data'");
  const auto net = make_net(
      str("layer { name: 'd' type: 'HDF5Data' top: 'data' ", own, " top: 'label' ", param,
          "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'data' bottom: 'label' top: 'l' }"));
  try {
    net->forward();
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + net->find_layer("d")->feed()->keys()[bad / 4];
  }
  return "no error";
}

TEST(Net, ABadLabelOfAPictureNamesTheRecordOfItsSample) {
  for (const int bad : {1, 6}) {  // of sample 0 and of sample 1
    const std::string text = error_of_label(bad);
    const std::string key = text.substr(text.rfind("| ") + 2);
    EXPECT_NE(text.find("(record \"" + key + "\" of layer \"d\")"), std::string::npos) << text;
  }
}

TEST(Net, ABadLabelNamesTheLayerThatGaveTheLabel) {
  const std::string text = error_of_label(1, "other");
  EXPECT_NE(text.find("row 0\" of layer \"other\")"), std::string::npos) << text;
}

}  // namespace
}  // namespace crema
