// Which layers are taken over by the one before them, and which must not be.
#include "net/fuse.h"

#include <gtest/gtest.h>

#include "io/prototxt.h"
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

}  // namespace
}  // namespace crema
