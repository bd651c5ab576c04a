// Which layers are taken over by the one before them, and which must not be.
#include "net/fuse.h"

#include <gtest/gtest.h>

#include "base/philox.h"
#include "io/prototxt.h"
#include "net/net.h"
#include "net/wire.h"

namespace crema {
namespace {

struct Row {
  std::string name, text{};
  bool train = false;
  std::string kept{};      // a blob that was asked for
  std::string absorbed{};  // names, in order
};

std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

const char kConv[] =
    "layer { name: 'conv' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { num_output: "
    "4 "
    "kernel_size: 3 } }\n";
const char kBatchNorm[] = "layer { name: 'bn' type: 'BatchNorm' bottom: 'c' top: 'b' }\n";
const char kScale[] =
    "layer { name: 'scale' type: 'Scale' bottom: 'b' top: 's' scale_param { bias_term: true } }\n";

std::string relu(const std::string& bottom, const std::string& top) {
  return "layer { name: 'relu' type: 'ReLU' bottom: '" + bottom + "' top: '" + top + "' }\n";
}
/// A convolution like kConv of another name, and a sum of two blobs.
std::string shortcut(const std::string& top) {
  return "layer { name: 'short' type: 'Convolution' bottom: 'x' top: '" + top +
         "' convolution_param { num_output: 4 kernel_size: 3 } }\n";
}
std::string sum(const std::string& a, const std::string& b, const std::string& fields = "") {
  return "layer { name: 'sum' type: 'Eltwise' bottom: '" + a + "' bottom: '" + b +
         "' top: 'e' eltwise_param { " + fields + " } }\n";
}
std::string loss(const std::string& bottom) {
  return "layer { name: 'loss' type: 'Reduction' bottom: '" + bottom +
         "' top: 'l' loss_weight: 1 }\n";
}

std::string absorbed_of(const Row& row) {
  NetParameter net;
  parse_text(
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 dim: 5 dim: 5 "
      "} } }\n" +
          row.text,
      "net", &net);
  net.mutable_state()->set_phase(row.train ? TRAIN : TEST);
  ErrorList errors;
  Graph graph = wire(net, {{}, "net", row.train}, errors);
  errors.throw_if_any();
  for (Value& value : graph.values) value.kept = value.users.empty() || value.name == row.kept;
  fuse(graph, row.train);
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    if (node.is_absorbed) names.push_back(node.param.name());
  }
  return join(names);
}

class Fuse : public testing::TestWithParam<Row> {};
TEST_P(Fuse, TakesOver) { EXPECT_EQ(absorbed_of(GetParam()), GetParam().absorbed); }

const std::vector<Row> kRows = {
    {.name = "relu_after_conv", .text = kConv + relu("c", "r"), .absorbed = "relu"},
    {.name = "relu_in_place", .text = kConv + relu("c", "c"), .absorbed = "relu"},
    {.name = "relu_in_training",
     .text = kConv + relu("c", "r") + loss("r"),
     .train = true,
     .absorbed = "relu"},
    {.name = "blob_asked_for", .text = kConv + relu("c", "r"), .kept = "c", .absorbed = ""},
    {.name = "second_reader", .text = kConv + relu("c", "r") + loss("c"), .absorbed = ""},
    {.name = "relu_after_input", .text = relu("x", "r"), .absorbed = ""},
    {.name = "scale_in_training",
     .text = std::string(kConv) + kBatchNorm + kScale + relu("s", "r") + loss("r"),
     .train = true,
     .absorbed = "scale, relu"},
    {.name = "folded_into_conv",
     .text = std::string(kConv) + kBatchNorm + kScale + relu("s", "r"),
     .absorbed = "bn, scale, relu"},
    {.name = "folded_without_scale",
     .text = std::string(kConv) + kBatchNorm + relu("b", "r"),
     .absorbed = "bn, relu"},
    {.name = "scale_along_another_axis",
     .text = std::string(kConv) + kBatchNorm +
             "layer { name: 'scale' type: 'Scale' bottom: 'b' top: 's' scale_param { axis: 2 } }\n",
     .train = true,
     .absorbed = ""},
    {.name = "scale_by_a_blob",
     .text = std::string(kConv) + kBatchNorm +
             "layer { name: 'scale' type: 'Scale' bottom: 'b' bottom: 'c' top: 's' scale_param { "
             "axis: 0 } }",
     .absorbed = ""},
    {.name = "relu_before_batch_norm",
     .text = kConv + relu("c", "c") + kBatchNorm,
     .absorbed = "relu"},
    {.name = "sum_into_conv",
     .text = shortcut("d") + kConv + sum("c", "d") + relu("e", "r"),
     .absorbed = "sum, relu"},
    {.name = "sum_into_the_later_conv",
     .text = kConv + shortcut("d") + sum("c", "d") + relu("e", "r"),
     .absorbed = "sum, relu"},
    {.name = "sum_into_conv_in_training",
     .text = shortcut("d") + kConv + sum("d", "c") + relu("e", "r") + loss("r"),
     .train = true,
     .absorbed = "sum, relu"},
    {.name = "sum_into_batch_norm_in_training",
     .text =
         shortcut("d") + kConv + kBatchNorm + kScale + sum("s", "d") + relu("e", "r") + loss("r"),
     .train = true,
     .absorbed = "scale, sum, relu"},
    {.name = "sum_into_folded_conv",
     .text = shortcut("d") + kConv + kBatchNorm + kScale + sum("s", "d") + relu("e", "r"),
     .absorbed = "bn, scale, sum, relu"},
    {.name = "sum_with_coefficients",
     .text = shortcut("d") + kConv + sum("c", "d", "coeff: 1 coeff: -1"),
     .absorbed = ""},
    {.name = "maximum", .text = shortcut("d") + kConv + sum("c", "d", "operation: MAX")},
    {.name = "sum_of_one_blob", .text = kConv + sum("c", "c")},
    {.name = "sum_whose_part_is_read_again",
     .text = shortcut("d") + kConv + sum("c", "d") + loss("c")},
    {.name = "sum_whose_part_is_asked_for",
     .text = shortcut("d") + kConv + sum("c", "d"),
     .kept = "c"},
    {.name = "sum_behind_an_activation",
     .text = shortcut("d") + kConv + relu("c", "c") + sum("c", "d"),
     .absorbed = "relu"},
    {.name = "sum_behind_another_layer",
     .text = shortcut("d") + kConv + "layer { name: 't' type: 'TanH' bottom: 'd' top: 't' }\n" +
             sum("c", "t")},
    {.name = "sum_whose_gradient_is_cut",
     .text = shortcut("d") + kConv +
             "layer { name: 'sum' type: 'Eltwise' bottom: 'd' bottom: 'c' top: 'e' "
             "propagate_down: true propagate_down: false }\n" +
             loss("c") +
             "layer { name: 'end' type: 'Reduction' bottom: 'e' top: 'e2' loss_weight: 1 }",
     .train = true},
    {.name = "gradient_cut",
     .text = std::string(kConv) +
             "layer { name: 'relu' type: 'ReLU' bottom: 'c' top: 'r' propagate_down: false }\n" +
             loss("c") +
             "layer { name: 'end' type: 'Reduction' bottom: 'r' top: 'e' loss_weight: 1 }",
     .train = true,
     .absorbed = ""},
};
INSTANTIATE_TEST_SUITE_P(Rows, Fuse, testing::ValuesIn(kRows),
                         [](const auto& info) { return info.param.name; });

/// Loss and parameter gradients of two branches that end in one sum, both with batch norm.
std::vector<float> two_branches(bool fuse) {
  NetParameter param;
  parse_text(
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 3 dim: 3 dim: 5 dim: 5 "
      "} } }\n" +
          shortcut("d") + "layer { name: 'dn' type: 'BatchNorm' bottom: 'd' top: 'dn' }\n" + kConv +
          kBatchNorm + kScale + sum("dn", "s") + relu("e", "e") +
          "layer { name: 'next' type: 'Convolution' bottom: 'e' top: 'n' convolution_param { "
          "num_output: 4 kernel_size: 1 } }\n"
          "layer { name: 'sum2' type: 'Eltwise' bottom: 'e' bottom: 'n' top: 'e2' }\n"
          "layer { name: 'end' type: 'Reduction' bottom: 'e2' top: 'l' loss_weight: 1 "
          "reduction_param { operation: SUMSQ } }",
      "net", &param);
  for (LayerParameter& layer : *param.mutable_layer()) {
    if (layer.type() != "Convolution") continue;
    layer.mutable_convolution_param()->mutable_weight_filler()->set_type("xavier");
  }
  NetOptions options;
  options.phase = TRAIN;
  options.train = true;
  options.log = false;
  options.fuse = fuse;
  options.force_nchw = !fuse;
  options.seed = 5;
  Net net(param, options, make_ops({}));
  std::vector<float> x(3 * 3 * 5 * 5);
  RandomStream random(2);
  for (float& value : x) value = static_cast<float>(random.uniform()) - 0.5F;
  net.set_blob("x", x);
  std::vector<float> values{net.forward()};
  net.backward();
  for (size_t p = 0; p < net.params().size(); ++p) {
    const std::vector<float> gradient = net.param_gradient(static_cast<int>(p));
    values.insert(values.end(), gradient.begin(), gradient.end());
  }
  return values;
}

TEST(FuseOff, GivesTheSameGradients) {
  const std::vector<float> fused = two_branches(true), oracle = two_branches(false);
  ASSERT_EQ(fused.size(), oracle.size());
  for (size_t i = 0; i < fused.size(); ++i) {
    ASSERT_NEAR(fused[i], oracle[i], 1e-4F * std::max(1.0F, std::abs(oracle[0]))) << i;
  }
}

}  // namespace
}  // namespace crema
