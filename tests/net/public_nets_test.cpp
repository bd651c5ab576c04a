// Miniatures of public nets, written by hand with the quirks of the files that people have
// (public_nets/*.prototxt), run in both phases and, with a loss (their own, or the squares of the
// outputs), backwards, as the float64 oracle does. Comments at the top of a file say what goes in
// and comes out: # input BLOB: drawn, or numbers that are repeated; # output BLOB: its shape in
// TEST, "any" where shape and values hang on roundings; # kept BLOB: compared too, and its shape;
// # warning TEXT: of the log; # no_gradient LAYER: nothing flows back into it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "base/philox.h"
#include "io/prototxt.h"
#include "io/scratch.h"
#include "net/net.h"
#include "net/upgrade.h"
#include "reference/reference.h"
#include "test_device.h"

namespace crema {
namespace {

const std::string kFolder = source_folder() + "/tests/net/public_nets/";

std::vector<std::string> net_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// What the comments of a file say: "input data" -> "drawn" and so on.
std::vector<std::pair<std::string, std::string>> directives(const std::string& name,
                                                            const std::string& kind) {
  std::istringstream lines(read_file(kFolder + name + ".prototxt"));
  std::vector<std::pair<std::string, std::string>> found;
  const std::string start = "# " + kind + " ";
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, start.size(), start) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) {
      found.emplace_back(line.substr(start.size()), "");
    } else {
      found.emplace_back(line.substr(start.size(), colon - start.size()), line.substr(colon + 2));
    }
  }
  return found;
}

std::vector<float> drawn(uint64_t key, int64_t count, float limit) {
  RandomStream random(key);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = limit * static_cast<float>(2 * random.uniform() - 1);
  return values;
}

std::vector<float> input_values(const std::string& blob, const std::string& text, int64_t count) {
  if (text == "drawn") return drawn(hash_name(blob.c_str()), count, 1);
  std::istringstream in(text);
  const std::vector<float> given{std::istream_iterator<float>(in), {}};
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = given[i % given.size()];
  return values;
}

/// "2 3" is a shape, "1" a single number.
Shape shape_of(const std::string& text) {
  std::istringstream in(text);
  Shape shape;
  for (int64_t dim = 0; in >> dim;) shape.push_back(dim);
  return text == "1" ? Shape{} : shape;
}

/// A net with parameters that do not depend on its fillers (deploy nets have none).
std::unique_ptr<Net> make_public(const NetParameter& param, const std::string& name, Phase phase,
                                 bool is_oracle) {
  NetOptions options;
  options.phase = phase;
  options.train = phase == TRAIN;
  options.fuse = !is_oracle;
  options.log = false;
  options.seed = 3;
  options.precision = DType::f32;  // whatever the file asks for
  options.file = name;
  for (const auto& [blob, unused] : directives(name, "kept")) options.keep.push_back(blob);
  auto net = std::make_unique<Net>(param, options,
                                   is_oracle ? make_reference_ops() : make_ops(test_device()));
  for (size_t i = 0; i < net->params().size(); ++i) {
    const NetParam& p = net->params()[i];
    const bool is_statistic = net->find_layer(p.owner)->param().type() == "BatchNorm";
    const Shape& shape = p.value.shape();
    const auto fan = static_cast<float>(shape.count() / std::max<int64_t>(1, shape.dim_or_one(0)));
    const float limit = shape.axes() > 1 ? std::sqrt(3 / fan) : 0.3F;
    std::vector<float> values = drawn(i + 1, shape.count(), limit);
    const bool is_variance = is_statistic && p.index > 0;
    if (is_variance || !p.learnable) std::fill(values.begin(), values.end(), 1.0F);
    net->set_param_values(static_cast<int>(i), values);
  }
  for (const auto& [blob, text] : directives(name, "input")) {
    net->set_blob(blob, input_values(blob, text, net->blob_shape(blob).count()));
  }
  return net;
}

double difference(const std::vector<float>& got, const std::vector<float>& want) {
  if (got.size() != want.size()) return INFINITY;
  double most = 0, magnitude = 1e-3;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i])) return INFINITY;
    most = std::max(most, std::abs(double{got[i]} - want[i]));
    magnitude = std::max(magnitude, std::abs(double{want[i]}));
  }
  return most / magnitude;
}

NetParameter read_public(const std::string& name) {
  NetParameter param = read_net(kFolder + name + ".prototxt");
  upgrade_net(param, name);
  return param;
}

/// Adds the sum of squares of each output as a loss, where the net has none in TRAIN.
void add_losses(NetParameter& param, const std::string& name) {
  std::vector<std::string> outputs;
  {
    const auto net = make_public(param, name, TRAIN, false);
    for (const NetOutput& output : net->outputs()) {
      if (output.loss_weight != 0) return;
      outputs.push_back(output.name);
    }
    if (net->forward() != 0) return;  // losses without tops
  }
  for (const std::string& output : outputs) {
    LayerParameter* layer = param.add_layer();
    layer->set_name("squares_" + output);
    layer->set_type("Reduction");
    layer->add_bottom(output);
    layer->add_top("squares_" + output);
    layer->add_loss_weight(1);
    layer->mutable_reduction_param()->set_operation(ReductionParameter::SUMSQ);
  }
}

class PublicNets : public testing::TestWithParam<std::string> {};

TEST_P(PublicNets, RunAsTheOracleDoes) {
  const std::string& name = GetParam();
  const LogLines log;
  const NetParameter param = read_public(name);
  const auto net = make_public(param, name, TEST, false);
  const auto oracle = make_public(param, name, TEST, true);
  for (const auto& [text, unused] : directives(name, "warning")) {
    EXPECT_TRUE(std::any_of(log.lines.begin(), log.lines.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    })) << text;
  }
  net->forward();
  oracle->forward();
  std::vector<std::string> expected, found, compared;
  for (const auto& [blob, shape] : directives(name, "kept")) {
    compared.push_back(blob);
    if (!shape.empty()) {
      EXPECT_EQ(net->blob_shape(blob), shape_of(shape)) << blob;
    }
  }
  for (const auto& [blob, shape] : directives(name, "output")) {
    expected.push_back(blob);
    if (shape == "any" || !net->has_blob(blob)) continue;
    compared.push_back(blob);
    EXPECT_EQ(net->blob_shape(blob), shape_of(shape)) << blob;
  }
  for (const NetOutput& output : net->outputs()) found.push_back(output.name);
  EXPECT_EQ(found, expected);
  for (const std::string& blob : compared) {
    const std::vector<float> values = net->blob_values(blob);
    EXPECT_LT(difference(values, oracle->blob_values(blob)), 1e-4) << blob;
    EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](float v) { return v != 0; }) ||
                blob.find("ccuracy") != std::string::npos)
        << blob << " is 0";
  }
}

TEST_P(PublicNets, LearnAsTheOracleDoes) {
  const std::string& name = GetParam();
  NetParameter param = read_public(name);
  add_losses(param, name);
  const auto net = make_public(param, name, TRAIN, false);
  const auto oracle = make_public(param, name, TRAIN, true);
  const float loss = net->forward();
  EXPECT_GT(loss, 0);
  EXPECT_NEAR(loss, oracle->forward(), 1e-4 * loss);
  net->backward();
  oracle->backward();
  const auto apart = directives(name, "no_gradient");
  for (size_t i = 0; i < net->params().size(); ++i) {
    const NetParam& p = net->params()[i];
    if (!p.needs_gradient) continue;
    const int place = static_cast<int>(i);
    const std::vector<float> gradient = net->param_gradient(place);
    EXPECT_LT(difference(gradient, oracle->param_gradient(place)), 1e-3)
        << p.owner << " parameter " << p.index;
    if (p.value.shape().axes() < 2) continue;  // a bias before batch norm has none
    const bool is_reached = std::none_of(apart.begin(), apart.end(),
                                         [&](const auto& layer) { return layer.first == p.owner; });
    EXPECT_EQ(std::any_of(gradient.begin(), gradient.end(), [](float v) { return v != 0; }),
              is_reached)
        << p.owner << " parameter " << p.index;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PublicNets, testing::ValuesIn(net_names()),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace crema
