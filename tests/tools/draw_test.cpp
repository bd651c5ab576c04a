// crema draw: what the graph holds, and how it reaches Graphviz.
#include <filesystem>

#include "base/file.h"
#include "tools/convert_testing.h"
#include "tools/crema_nets.h"

namespace crema {
namespace {

constexpr const char* kNet = R"(
  name: 'a "net"'
  layer { name: 'd' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }
  layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'
          inner_product_param { num_output: 4 weight_filler { type: 'xavier' } } }
  layer { name: 'relu' type: 'ReLU' bottom: 'y' top: 'y' }
  layer { name: 'drop' type: 'Dropout' bottom: 'y' top: 'y' include { phase: TRAIN } }
  layer { name: 'p' type: 'Softmax' bottom: 'y' top: 'p' include { phase: TEST } }
  layer { name: 'l' type: 'Reduction' bottom: 'y' top: 'l' }
)";

TEST(Draw, WritesLayersShapesParametersAndPhases) {
  const TestFolder folder;
  folder.write("net.prototxt", kNet);
  const Ended ended = run_crema(folder, {"draw", "--model=net.prototxt", "--output=n.dot"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  const std::string dot = read_file(folder / "n.dot");
  EXPECT_HAS(dot, "digraph \"a \\\"net\\\"\" {\n  rankdir=TB;\n");
  EXPECT_HAS(dot, "l1 [label=\"ip\\nInnerProduct\\nnum_output: 4\\n16 parameters\" ");
  EXPECT_HAS(dot, "l3 [label=\"drop\\nDropout\\nTRAIN only\" fillcolor=\"#fde0c5\"]");
  EXPECT_HAS(dot, "l4 [label=\"p\\nSoftmax\\nTEST only\"");
  EXPECT_HAS(dot, "  l0 -> l1 [label=\"x\\n2x3\"];\n  l1 -> l2 [label=\"y\\n2x4\"];\n");
  // in TEST the loss reads relu's version, in TRAIN drop's
  EXPECT_HAS(dot, "  l2 -> l3 ");
  EXPECT_HAS(dot, "  l2 -> l4 ");
  EXPECT_HAS(dot, "  l2 -> l5 ");
  EXPECT_HAS(dot, "  l3 -> l5 ");
  EXPECT_EQ(dot.find("l3 -> l4"), std::string::npos);
}

TEST(Draw, OnePhaseHasItsLayersOnly) {
  const TestFolder folder;
  folder.write("net.prototxt", kNet);
  EXPECT_EQ(run_crema(folder, {"draw", "--model=net.prototxt", "--output=n.dot", "--phase=TEST",
                               "--rankdir=LR"})
                .status,
            0);
  const std::string dot = read_file(folder / "n.dot");
  EXPECT_EQ(dot.find("drop"), std::string::npos);
  EXPECT_HAS(dot, "rankdir=LR");
}

TEST(Draw, RunsDotWhereItIsInstalled) {
  const TestFolder folder;
  folder.write("net.prototxt", kNet);
  folder.write("dot", "#!/bin/sh\nprintf '%s' \"$1\" >\"$3\"\n");
  std::filesystem::permissions(folder / "dot", std::filesystem::perms::all);
  RunOptions options;
  options.environment = {"PATH=" + folder.path()};
  Ended ended = run_crema(folder, {"draw", "--model=net.prototxt", "--output=n.svg"}, options);
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(read_file(folder / "n.svg"), "-Tsvg");
  EXPECT_FALSE(folder.has("n.dot"));
  folder.write("dot", "#!/bin/sh\nexit 3\n");
  std::filesystem::permissions(folder / "dot", std::filesystem::perms::all);
  ended = run_crema(folder, {"draw", "--model=net.prototxt", "--output=n.svg"}, options);
  EXPECT_EQ(ended.status, 1);
  EXPECT_HAS(ended.err, "cannot write n.svg: dot failed");
  EXPECT_EQ(read_file(folder / "n.svg"), "-Tsvg");
}

TEST(Draw, WithoutDotWritesItsFileAndSaysSo) {
  const TestFolder folder;
  folder.write("net.prototxt", kNet);
  RunOptions options;
  options.environment = {"PATH=/nowhere"};
  const Ended ended =
      run_crema(folder, {"draw", "--model=net.prototxt", "--output=n.png"}, options);
  EXPECT_EQ(ended.status, 0);
  EXPECT_HAS(ended.err, "dot is not installed: wrote n.dot; \"dot -Tpng -o n.png n.dot\" draws it");
  EXPECT_TRUE(folder.has("n.dot"));
  EXPECT_FALSE(folder.has("n.png"));
}

TEST(Draw, RefusesOtherNamesAndBrokenNets) {
  const TestFolder folder;
  folder.write("net.prototxt", "layer { name: 'a' type: 'ReLU' bottom: 'x' top: 'y' }");
  Ended ended = run_crema(folder, {"draw", "--model=net.prototxt", "--output=n.jpg"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_HAS(ended.err, "the name must end in .svg, .png, .pdf or .dot");
  ended = run_crema(folder, {"draw", "--model=net.prototxt", "--output=n.dot"});
  EXPECT_EQ(ended.status, 0);  // drawn as far as it goes
  EXPECT_HAS(ended.err, "net.prototxt:1: layer \"a\" (ReLU)");
  EXPECT_HAS(ended.err, "drawn without shapes in phase TEST");
  EXPECT_EQ(run_crema(folder, {"draw", "--model=none", "--output=n.dot"}).status, 1);
}

}  // namespace
}  // namespace crema
