// Which Concats and Slices need no copy, and which must copy; and that the values are the same.
#include "net/pieces.h"

#include <gtest/gtest.h>

#include "base/philox.h"
#include "io/prototxt.h"
#include "net/net.h"
#include "net/wire.h"

namespace crema {
namespace {

std::string input(const std::string& dims) {
  std::string text = "layer { name: 'x' type: 'Input' top: 'x' input_param { shape {";
  for (const std::string& dim : split(dims, ' ')) text += " dim: " + dim;
  return text + " } } }\n";
}

std::string tanh(const std::string& bottom, const std::string& top) {
  return str("layer { name: '", top, "' type: 'TanH' bottom: '", bottom, "' top: '", top, "' }\n");
}

std::string product(const std::string& bottom, const std::string& top) {
  return str("layer { name: '", top, "' type: 'InnerProduct' bottom: '", bottom, "' top: '", top,
             "' inner_product_param { num_output: 3 weight_filler { type: 'gaussian' } } }\n");
}

std::string concat(const std::string& bottoms, int axis, const std::string& top = "c") {
  std::string text = str("layer { name: '", top, "' type: 'Concat' top: '", top, "'");
  for (const std::string& bottom : split(bottoms, ' ')) text += str(" bottom: '", bottom, "'");
  return text + str(" concat_param { axis: ", axis, " } }\n");
}

std::string slice(const std::string& bottom, const std::string& tops, int axis) {
  std::string text = str("layer { name: 'slice' type: 'Slice' bottom: '", bottom, "'");
  for (const std::string& top : split(tops, ' ')) text += str(" top: '", top, "'");
  return text + str(" slice_param { axis: ", axis, " } }\n");
}

std::string loss(const std::string& bottom) {
  return str("layer { name: 'loss ", bottom, "' type: 'Reduction' bottom: '", bottom, "' top: 'l ",
             bottom, "' loss_weight: 1 reduction_param { operation: SUMSQ } }\n");
}

struct Row {
  std::string name, text;
  Layout layout = Layout::nchw;
  std::string data{}, gradients{};  // "part in whole", in order
};

std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

std::string names_of(const Graph& graph, const std::vector<Piece>& pieces) {
  std::vector<std::string> names;
  for (const Piece& piece : pieces) {
    names.push_back(graph.values[piece.part].name + " in " + graph.values[piece.whole].name);
  }
  return join(names);
}

class PiecesOf : public testing::TestWithParam<Row> {};
TEST_P(PiecesOf, LieInside) {
  NetParameter net;
  parse_text(GetParam().text, "net", &net);
  net.mutable_state()->set_phase(TRAIN);
  ErrorList errors;
  Graph graph = wire(net, {{}, "net", true}, errors);
  errors.throw_if_any();
  for (Value& value : graph.values) {
    value.kept = value.users.empty();
    value.layout = GetParam().layout;
  }
  EXPECT_EQ(names_of(graph, data_pieces(graph)), GetParam().data);
  const GradientPieces gradients = gradient_pieces(graph);
  std::vector<Piece> all;
  for (const std::vector<Piece>& of_node : gradients.of_concat) {
    all.insert(all.end(), of_node.begin(), of_node.end());
  }
  all.insert(all.end(), gradients.of_slices.begin(), gradients.of_slices.end());
  EXPECT_EQ(names_of(graph, all), GetParam().gradients);
}

const std::string kTwo = product("x", "h") + tanh("h", "a") + tanh("h", "b");
const char kBlobs[] =
    "layer { name: 'a' type: 'Convolution' bottom: 'x' top: 'a' convolution_param { num_output: 4 "
    "kernel_size: 1 } }\n"
    "layer { name: 'b' type: 'Convolution' bottom: 'x' top: 'b' convolution_param { num_output: 4 "
    "kernel_size: 1 } }\n";

const std::vector<Row> kRows = {
    {.name = "channels_of_one_picture",
     .text = input("1 2 4 4") + kBlobs + concat("a b", 1) + loss("c"),
     .data = "a in c, b in c",
     .gradients = "a in c, b in c"},
    {.name = "channels_of_two_pictures",
     .text = input("2 2 4 4") + kBlobs + concat("a b", 1) + loss("c")},
    {.name = "channels_last_of_one_picture",
     .text = input("1 2 4 4") + kBlobs + concat("a b", 1) + loss("c"),
     .layout = Layout::nhwc},
    {.name = "pictures",
     .text = input("2 2 4 4") + kBlobs + concat("a b", 0) + loss("c"),
     .data = "a in c, b in c",
     .gradients = "a in c, b in c"},
    {.name = "channels_last_pictures",
     .text = input("2 2 4 4") + kBlobs + concat("a b", 0) + loss("c"),
     .layout = Layout::nhwc,
     .data = "a in c, b in c",
     .gradients = "a in c, b in c"},
    {.name = "an_unaligned_part", .text = input("1 2 5 5") + kBlobs + concat("a b", 1) + loss("c")},
    {.name = "one_blob_twice",
     .text = input("1 2 4 4") + kBlobs + concat("a a", 1) + loss("c") + loss("b"),
     .gradients = "a in c, a in c"},
    {.name = "memory_from_outside",
     .text = input("1 2 4 8") + "force_backward: true " + kBlobs + concat("x a", 1) + loss("c") +
             loss("b"),
     .gradients = "x in c, a in c"},
    {.name = "a_part_of_two_wholes",
     .text = input("1 2 4 4") + kBlobs + concat("a b", 1) + concat("a b", 1, "d") + loss("c") +
             loss("d"),
     .data = "a in c, b in c",
     .gradients = "a in c, b in c, a in d, b in d"},
    {.name = "a_part_with_a_loss_of_its_own",
     .text = input("1 2 4 4") + kBlobs +
             "layer { name: 'n' type: 'Power' bottom: 'a' top: 'p' loss_weight: 1 }\n" +
             concat("p b", 1) + loss("c"),
     .data = "p in c, b in c",
     .gradients = "b in c"},
    {.name = "slices_of_pictures",
     .text = input("2 2 4 4") + kBlobs + slice("a", "s t", 0) + loss("s") + loss("t") + loss("b"),
     .data = "s in a, t in a",
     .gradients = "s in a, t in a"},
    {.name = "slices_of_channels_of_two_pictures",
     .text = input("2 2 4 4") + kBlobs + slice("a", "s t", 1) + loss("s") + loss("t") + loss("b")},
    {.name = "slices_of_a_blob_with_another_reader",
     .text = input("2 2 4 4") + kBlobs + slice("a", "s t", 0) + loss("s") + loss("t") + loss("b") +
             loss("a"),
     .data = "s in a, t in a"},
    {.name = "a_slice_without_gradient",
     .text = input("2 2 4 4") + kBlobs + slice("a", "s t", 0) + loss("s") + loss("b"),
     .data = "s in a, t in a"},
};
INSTANTIATE_TEST_SUITE_P(Rows, PiecesOf, testing::ValuesIn(kRows),
                         [](const auto& info) { return info.param.name; });

/// Values and gradients of a net with everything kept (nothing inside anything) and planned.
struct Values {
  std::vector<float> loss, gradients;
};

Values run(const std::string& text, bool keep_all) {
  NetParameter param;
  parse_text(text, "net", &param);
  NetOptions options;
  options.phase = TRAIN;
  options.train = true;
  options.log = false;
  options.keep_all = keep_all;
  options.seed = 3;
  Net net(param, options, make_ops({}));
  std::vector<float> x(static_cast<size_t>(net.blob_shape("x").count()));
  RandomStream random(5);
  for (float& value : x) value = static_cast<float>(random.uniform()) - 0.5F;
  net.set_blob("x", x);
  Values out;
  for (int i = 0; i < 2; ++i) out.loss.push_back(net.forward());
  net.backward();
  for (size_t p = 0; p < net.params().size(); ++p) {
    const std::vector<float> gradient = net.param_gradient(static_cast<int>(p));
    out.gradients.insert(out.gradients.end(), gradient.begin(), gradient.end());
  }
  return out;
}

TEST(Pieces, GiveTheValuesOfCopies) {
  const std::string nested = input("2 2 4 4") + kBlobs + concat("a b", 0) + tanh("c", "c") +
                             slice("c", "s t", 0) + tanh("s", "s") + concat("s t", 0, "d") +
                             loss("d") + loss("t");
  const std::string densely = input("1 2 4 4") + kBlobs + concat("a b", 1) +
                              "layer { name: 'e' type: 'Convolution' bottom: 'c' top: 'e' "
                              "convolution_param { num_output: 4 kernel_size: 3 pad: 1 "
                              "weight_filler { type: 'xavier' } } }\n" +
                              concat("c e", 1, "f") + loss("f");
  for (std::string text : {nested, densely}) {
    for (size_t at = 0; (at = text.find("kernel_size: 1 }", at)) != std::string::npos;) {
      text.replace(at, 16, "kernel_size: 1 weight_filler { type: 'xavier' } }");
    }
    const Values planned = run(text, false), kept = run(text, true);
    ASSERT_GT(std::abs(kept.loss[0]), 0.01F);
    EXPECT_EQ(planned.loss, kept.loss);
    EXPECT_EQ(planned.gradients, kept.gradients);
  }
}

}  // namespace
}  // namespace crema
