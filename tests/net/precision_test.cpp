// Which layers work in 16 bits, which must not, and that blobs are converted at the edges of their
// runs only. The device here takes what a row says, whatever the processor has.
#include "net/precision.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "io/prototxt.h"
#include "net/fuse.h"
#include "net/layout.h"
#include "net/net.h"
#include "net/wire.h"
#include "ops/forwarding_ops.h"
#include "test_device.h"

namespace crema {
namespace {

/// Takes convolutions and those families in 16 bits.
class LowOps : public ForwardingOps {
 public:
  explicit LowOps(std::set<Family> families)
      : ForwardingOps(make_ops({}), false), families_(std::move(families)) {}
  std::optional<std::string> why_not_precision(DType) const override { return std::nullopt; }
  bool computes(Family family, DType type) const override {
    return type == DType::f32 || families_.count(family) > 0;
  }
  std::optional<std::string> why_not(const ConvDesc& d) const override {
    if (d.pad.axes > 2) return "too many axes";
    return std::nullopt;
  }

 private:
  std::set<Family> families_;
};

const std::set<Family> kAll = {Family::unary, Family::linear, Family::pool, Family::norm,
                               Family::elements};
const std::set<Family> kWithoutNorm = {Family::unary, Family::linear, Family::pool,
                                       Family::elements};

struct Row {
  std::string name, text;
  std::string low{};       // names of the layers that work in 16 bits, in order
  std::string converts{};  // of steps that change the type, in order
  int convert_steps = -1;  // with those that change the order alone; -1: not looked at
  bool train = true, fuses = true;
  std::set<Family> families = kAll;
  std::optional<DType> asked = DType::bf16;
};

std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

std::string layer(const std::string& type, const std::string& bottoms, const std::string& top,
                  const std::string& fields = "") {
  std::string text = str("layer { name: '", top, "' type: '", type, "' ");
  for (const std::string& bottom : split(bottoms, ' ')) text += str("bottom: '", bottom, "' ");
  return str(text, "top: '", top, "' ", fields, " }\n");
}

std::string conv(const std::string& bottom, const std::string& top, const std::string& fields = "",
                 int outputs = 16) {
  return layer(
      "Convolution", bottom, top,
      str("convolution_param { num_output: ", outputs, " kernel_size: 3 pad: 1 } ", fields));
}
std::string conv_1x1(const std::string& bottom, const std::string& top, int outputs) {
  return layer("Convolution", bottom, top,
               str("convolution_param { num_output: ", outputs, " kernel_size: 1 }"));
}
std::string product(const std::string& bottom, const std::string& top,
                    const std::string& fields = "") {
  return layer("InnerProduct", bottom, top, "inner_product_param { num_output: 5 } " + fields);
}
std::string loss(const std::string& bottom) {
  return layer("Reduction", bottom, "loss", "loss_weight: 1");
}
std::string norm(const std::string& bottom, const std::string& top) {
  return layer("BatchNorm", bottom, top);
}

struct Lowered {
  Graph graph;
  DType type;
};

Lowered lowered(const Row& row) {
  NetParameter net;
  const bool has_data = row.text.find("type: \"Input\"") != std::string::npos;
  const std::string inputs =
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 16 dim: 8 "
      "dim: 8 } } }\n"
      "layer { name: 'label' type: 'Input' top: 'label' input_param { shape { dim: 2 } } }\n";
  parse_text((has_data ? "" : inputs) + row.text, "net", &net);
  net.mutable_state()->set_phase(row.train ? TRAIN : TEST);
  ErrorList errors;
  Lowered out{wire(net, {{}, "net", row.train}, errors), DType::f32};
  errors.throw_if_any();
  for (Value& value : out.graph.values) value.kept = value.users.empty();
  if (row.fuses) fuse(out.graph, row.train);
  const LowOps ops(row.families);
  lay_out(out.graph, ops, false);
  out.type = lower_precision(out.graph, ops, net, {row.asked, row.train, "net"});
  return out;
}

class Precision : public testing::TestWithParam<Row> {};

TEST_P(Precision, LowersRunsAndConvertsAtTheirEdges) {
  const Lowered result = lowered(GetParam());
  std::vector<std::string> low, converts;
  int steps = 0;
  for (const Node& node : result.graph.nodes) {
    if (node.is_absorbed) continue;
    const bool copies = !node.traits.tops_alias_bottom;
    if (node.is_convert) {
      steps += copies ? 1 : 0;
      const Value& from = result.graph.values[node.bottoms[0]];
      const Value& to = result.graph.values[node.tops[0]];
      if (from.dtype != to.dtype) converts.push_back(node.param.name());
      continue;
    }
    if (!copies || node.tops.empty()) continue;
    // All blobs of a layer have one type: what a layer reads was converted before it.
    const DType type = result.graph.values[node.tops[0]].dtype;
    for (const int v : node.bottoms)
      EXPECT_EQ(result.graph.values[v].dtype, type) << node.param.name();
    for (const int v : node.tops)
      EXPECT_EQ(result.graph.values[v].dtype, type) << node.param.name();
    if (is_low(type)) low.push_back(node.param.name());
  }
  EXPECT_EQ(join(low), GetParam().low);
  EXPECT_EQ(join(converts), GetParam().converts);
  if (GetParam().convert_steps >= 0) {
    EXPECT_EQ(steps, GetParam().convert_steps);
  }
  EXPECT_EQ(is_low(result.type), !GetParam().low.empty());
}

TEST_P(Precision, GradientsGoBackThroughConverts) {
  const Lowered result = lowered(GetParam());
  for (size_t n = 0; n < result.graph.nodes.size(); ++n) {
    const Node& node = result.graph.nodes[n];
    for (size_t b = 0; b < node.bottoms.size(); ++b) {
      const Value& bottom = result.graph.values[node.bottoms[b]];
      if (!node.propagates[b]) continue;
      EXPECT_TRUE(bottom.has_gradient) << node.param.name() << ", bottom " << bottom.name;
      const Node& producer = result.graph.nodes[bottom.producer];
      if (!producer.is_convert) continue;
      EXPECT_TRUE(producer.runs_backward && producer.propagates[0]) << producer.param.name();
    }
  }
}

const std::string kResidualBlock = conv("x", "a") + norm("a", "an") + layer("ReLU", "an", "ar") +
                                   conv("ar", "b") + norm("b", "bn") +
                                   layer("Eltwise", "bn x", "sum") + layer("ReLU", "sum", "out") +
                                   product("out", "score") + loss("score");
const std::string kInception =
    conv("x", "stem") + layer("LRN", "stem", "lrn") + conv_1x1("lrn", "a", 16) +
    conv_1x1("lrn", "b1", 8) + conv("b1", "b2") +
    layer("Pooling", "lrn", "c1", "pooling_param { kernel_size: 3 stride: 1 pad: 1 }") +
    conv_1x1("c1", "c2", 16) + layer("Concat", "a b2 c2", "joined") +
    layer("Pooling", "joined", "p", "pooling_param { pool: AVE kernel_size: 8 }") +
    layer("Dropout", "p", "d") + product("d", "score") + loss("score") +
    layer("Accuracy", "score label", "accuracy");

const std::vector<Row> kRows = {
    {.name = "one_convolution",
     .text = conv("x", "a") + loss("a"),
     .low = "a",
     .converts = "x to nhwc, a to f32"},
    {.name = "no_layer_gains",
     .text = layer("ReLU", "x", "a") +
             layer("Pooling", "a", "b", "pooling_param { kernel_size: 2 }") + loss("b")},
    {.name = "f32_is_asked_for", .text = conv("x", "a") + loss("a"), .asked = DType::f32},
    {.name = "nothing_is_asked_for", .text = conv("x", "a") + loss("a"), .asked = {}},
    {.name = "readers_share_a_convert",
     .text = conv("x", "a") + layer("Softmax", "a", "s") + loss("a"),
     .low = "a",
     .converts = "x to nhwc, a to f32"},
    {.name = "what_is_between_stays_low",
     .text = conv("x", "a") + layer("Sigmoid", "a", "b") +
             layer("Pooling", "b", "c", "pooling_param { kernel_size: 2 }") + conv("c", "d") +
             loss("d"),
     .low = "a, b, c, d",
     .converts = "x to nhwc, d to f32",
     .convert_steps = 2},
    {.name = "a_layer_of_f32_between",
     .text = conv("x", "a") + layer("LRN", "a", "b") + conv("b", "c") + loss("c"),
     .low = "a, c",
     .converts = "x to nhwc, a to f32, b to bf16, c to f32",
     .convert_steps = 4},
    {.name = "an_alias_has_its_bottoms_type",
     .text = conv("x", "a") + layer("Flatten", "a", "f") + product("f", "y") + loss("y"),
     .low = "a, y",
     .converts = "x to nhwc, y to f32"},
    {.name = "a_mask_of_positions_is_f32",
     .text = conv("x", "a") +
             "layer { name: 'p' type: 'Pooling' bottom: 'a' top: 'p' top: 'mask' pooling_param { "
             "kernel_size: 2 } }\n" +
             product("p", "y") + loss("y"),
     .low = "a, y",
     .converts = "x to nhwc, a to f32, p to nchw, y to f32"},
    {.name = "a_loss_is_f32",
     .text = conv("x", "a") + product("a", "y", "loss_weight: 1"),
     .low = "a",
     .converts = "x to nhwc, a to nchw"},
    {.name = "a_sum_but_no_product",
     .text = conv("x", "a") + conv("x", "b") +
             layer("Eltwise", "a b", "s", "eltwise_param { coeff: 1 coeff: -1 }") +
             layer("Eltwise", "a b", "m", "eltwise_param { operation: PROD }") + product("s", "y") +
             loss("y"),
     .low = "a, b, s, y",
     .converts = "x to nhwc, a to f32, b to f32, y to f32"},
    {.name = "the_device_has_no_convolution_of_it",
     .text = "layer { name: 'v' type: 'Input' top: 'v' input_param { shape { dim: 1 dim: 4 dim: 5 "
             "dim: 5 dim: 5 } } }\n" +
             layer("Convolution", "v", "a", "convolution_param { num_output: 4 kernel_size: 3 }") +
             product("a", "y"),
     .low = "y",
     .converts = "a to nchw"},
    {.name = "the_device_has_no_norm",
     .text = conv("x", "a") + norm("a", "b") + conv("b", "c") + loss("c"),
     .low = "a, c",
     .converts = "x to nhwc, a to f32, b to bf16, c to f32",
     .families = kWithoutNorm},
    {.name = "fields_of_the_net",
     .text = "default_forward_type: FLOAT16 default_backward_type: FLOAT16\n" + conv("x", "a") +
             loss("a"),
     .low = "a",
     .converts = "x to nhwc, a to f32",
     .asked = {}},
    {.name = "the_command_decides_over_the_net",
     .text = "default_forward_type: FLOAT16\n" + conv("x", "a") + loss("a"),
     .asked = DType::f32},
    {.name = "a_layer_of_float",
     .text = conv("x", "a", "forward_type: FLOAT") + conv("a", "b") +
             product("b", "y", "backward_type: FLOAT") + loss("y"),
     .low = "b",
     .converts = "a to bf16, b to nchw"},
    {.name = "a_layer_of_float16",
     .text = conv("x", "a") + conv("a", "b", "forward_type: FLOAT16") + loss("b"),
     .low = "b",
     .converts = "a to f16, b to f32",
     .asked = {}},
    {.name = "residual_block",
     .text = kResidualBlock,
     .low = "a, an, b, bn, score",
     .converts = "x to nhwc, score to f32",
     .convert_steps = 3},
    {.name = "residual_block_without_norm",
     .text = kResidualBlock,
     .low = "a, b, score",
     .converts = "x to bf16, a to f32, ar to bf16, b to f32, out to nchw, score to f32",
     .families = kWithoutNorm},
    {.name = "residual_block_step_by_step",
     .text = kResidualBlock,
     .low = "a, an, ar, b, bn, sum, out, score",
     .converts = "x to nhwc, score to f32",
     .convert_steps = 3,
     .fuses = false},
    {.name = "inception",
     .text = kInception,
     .low = "stem, a, b1, b2, c1, c2, joined, p, d, score",
     .converts = "x to nhwc, stem to f32, lrn to bf16, score to f32"},
};

TEST(PrecisionErrors, NameWhatTheDeviceLacks) {
  class F32Ops : public LowOps {
   public:
    F32Ops() : LowOps({}) {}
    std::optional<std::string> why_not_precision(DType type) const override {
      if (type == DType::f32) return std::nullopt;
      return "it is old";
    }
  };
  NetParameter net;
  net.set_default_forward_type(FLOAT16);
  Graph graph;
  EXPECT_EQ(lower_precision(graph, F32Ops(), net, {std::nullopt, true, "net"}), DType::f32);
  try {
    lower_precision(graph, F32Ops(), net, {DType::bf16, true, "net"});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "precision bf16: it is old");
  }
}

/// What a net of layers between two convolutions gives in that type.
std::vector<float> output_in(DType type, const std::string& between) {
  NetParameter net;
  parse_text(
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 16 dim: 8 "
      "dim: 8 } } }\n" +
          conv("x", "a") + between + conv("b", "c"),
      "net", &net);
  for (LayerParameter& layer : *net.mutable_layer()) {
    if (layer.type() == "Convolution") {
      layer.mutable_convolution_param()->mutable_weight_filler()->set_type("xavier");
    }
  }
  const std::shared_ptr<Ops> ops = make_ops(test_device());
  NetOptions options;
  options.phase = TEST;
  options.log = false;
  options.precision = type;
  options.seed = 3;
  Net built(net, options, ops);
  std::vector<float> values(2 * 16 * 8 * 8);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 31) / 31 - 0.4F;
  built.set_blob("x", values);
  built.forward();
  return built.blob_values("c");
}

TEST(PrecisionRuns, EveryFormOfEltwiseThatIsLowered) {
  if (make_ops(test_device())->why_not_precision(DType::bf16)) GTEST_SKIP() << "no bf16 here";
  for (const std::string fields : {"coeff: 3", "operation: MAX"}) {
    const std::string one = layer("Eltwise", "a", "b", "eltwise_param { " + fields + " }");
    const std::vector<float> exact = output_in(DType::f32, one), low = output_in(DType::bf16, one);
    ASSERT_EQ(exact.size(), low.size());
    const float largest = *std::max_element(exact.begin(), exact.end());
    for (size_t i = 0; i < exact.size(); ++i) {
      ASSERT_NEAR(low[i], exact[i], 0.03F * largest) << fields << ", element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Precision, testing::ValuesIn(kRows),
                         [](const auto& info) { return info.param.name; });

std::string model(const std::string& name) {
  return read_file(source_folder() + "/models/" + name + "/deploy.prototxt");
}

const std::vector<Row> kModels = {
    {.name = "lenet",
     .text = model("lenet"),
     .low = "conv1, pool1, conv2, pool2, ip1, ip2",
     .converts = "data to bf16, ip2 to f32",
     .convert_steps = 3,
     .train = false},
    {.name = "cifar10_quick",
     .text = model("cifar10_quick"),
     .low = "conv1, pool1, relu1, conv2, pool2, conv3, pool3, ip1, ip2",
     .converts = "data to nhwc, ip2 to f32",
     .convert_steps = 3,
     .train = false},
};

INSTANTIATE_TEST_SUITE_P(Models, Precision, testing::ValuesIn(kModels),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace crema
