// Where blobs change their order in memory: at the edges of a run of layers that take any order,
// once for all readers, and never where nothing prefers another order.
#include "net/layout.h"

#include <gtest/gtest.h>

#include "io/prototxt.h"
#include "net/wire.h"

namespace crema {
namespace {

struct Row {
  std::string name, text;
  bool force_nchw = false;
  std::string converts{};  // names of the steps put in, in order
};

std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

std::string layer(const std::string& type, const std::string& bottom, const std::string& top,
                  const std::string& fields = "") {
  return str("layer { name: '", top, "' type: '", type, "' bottom: '", bottom, "' top: '", top,
             "' ", fields, " }\n");
}

std::string conv(const std::string& bottom, const std::string& top) {
  return layer("Convolution", bottom, top,
               "convolution_param { num_output: 16 kernel_size: 3 pad: 1 }");
}

std::string product(const std::string& bottom, const std::string& top) {
  return layer("InnerProduct", bottom, top, "inner_product_param { num_output: 5 }");
}

std::string converts_of(const Row& row) {
  NetParameter net;
  parse_text(
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 16 dim: 8 "
      "dim: 8 } } }\n" +
          row.text,
      "net", &net);
  net.mutable_state()->set_phase(TEST);
  ErrorList errors;
  Graph graph = wire(net, {{}, "net", false}, errors);
  errors.throw_if_any();
  lay_out(graph, *make_ops({}), row.force_nchw);
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    if (node.is_convert) names.push_back(node.param.name());
  }
  return join(names);
}

class LayoutOf : public testing::TestWithParam<Row> {};
TEST_P(LayoutOf, ConvertsAtTheEdgesOnly) {
  EXPECT_EQ(converts_of(GetParam()), GetParam().converts);
}

const std::vector<Row> kRows = {
    {.name = "a_run_of_convolutions",
     .text = conv("x", "a") + layer("ReLU", "a", "b") + conv("b", "c") + product("c", "y"),
     .converts = "x to nhwc, c to nchw"},
    {.name = "two_readers_share_one",
     .text = conv("x", "a") + conv("x", "b") + layer("ReLU", "x", "r"),
     .converts = "x to nhwc"},
    {.name = "the_oracle",
     .text = conv("x", "a") + product("a", "y"),
     .force_nchw = true,
     .converts = ""},
    {.name = "nothing_prefers_another", .text = layer("ReLU", "x", "r") + product("r", "y")},
    {.name = "a_blob_of_one_channel_only_changes_its_name",
     .text = layer("Convolution", "x", "a", "convolution_param { num_output: 16 kernel_size: 8 }") +
             product("a", "y"),
     .converts = "x to nhwc, a to nchw"},
};
INSTANTIATE_TEST_SUITE_P(Rows, LayoutOf, testing::ValuesIn(kRows),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace crema
