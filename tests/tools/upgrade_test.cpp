// The upgrade tools: each old form as text and as binary, and what is refused.
#include "base/file.h"
#include "tools/convert_testing.h"
#include "tools/crema_nets.h"

namespace crema {
namespace {

struct OldNet {
  const char* name;
  const char* old_text;
  const char* new_text;
};

std::ostream& operator<<(std::ostream& out, const OldNet& row) { return out << row.name; }

NetParameter parsed(const std::string& text) {
  NetParameter net;
  parse_text(text, "f", &net);
  clear_source_locations(&net);
  return net;
}

class UpgradeTool : public ::testing::TestWithParam<OldNet> {};

TEST_P(UpgradeTool, WritesTextOfToday) {
  const TestFolder folder;
  folder.write("old", GetParam().old_text);
  const Ended ended =
      run_program("upgrade_net_proto_text", {"old", "new"}, {.folder = folder.path()});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(read_file(folder / "new"), write_text(parsed(GetParam().new_text)));
}

TEST_P(UpgradeTool, WritesBinaryOfToday) {
  const TestFolder folder;
  folder.write("old", parsed(GetParam().old_text).SerializeAsString());
  const Ended ended =
      run_program("upgrade_net_proto_binary", {"old", "new"}, {.folder = folder.path()});
  EXPECT_EQ(ended.status, 0) << ended.err;
  NetParameter net;
  ASSERT_TRUE(net.ParseFromString(read_file(folder / "new")));
  EXPECT_EQ(write_text(net), write_text(parsed(GetParam().new_text)));
}

INSTANTIATE_TEST_SUITE_P(
    Nets, UpgradeTool,
    ::testing::ValuesIn(std::vector<OldNet>{
        {"v0",
         R"(name: "n" input: "d" input_dim: 1 input_dim: 2 input_dim: 3 input_dim: 4
            layers { layer { name: "p" type: "padding" pad: 2 } bottom: "d" top: "p" }
            layers { layer { name: "c" type: "conv" num_output: 3 kernelsize: 5 blobs_lr: 1
                             blobs_lr: 2 weight_decay: 1 weight_decay: 0
                             blobs { num: 1 channels: 1 height: 1 width: 2 data: 7 data: 8 } }
                     bottom: "p" top: "c" })",
         R"(name: "n"
            layer { name: "input" type: "Input" top: "d"
                    input_param { shape { dim: 1 dim: 2 dim: 3 dim: 4 } } }
            layer { name: "c" type: "Convolution" bottom: "d" top: "c"
                    param { lr_mult: 1 decay_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
                    blobs { num: 1 channels: 1 height: 1 width: 2 data: 7 data: 8 }
                    convolution_param { num_output: 3 kernel_size: 5 pad: 2 } })"},
        {"v1_and_transform",
         R"(layers { name: "d" type: DATA top: "d"
                     data_param { source: "s" scale: 0.5 mean_file: "m" crop_size: 3 mirror: true } }
            layers { name: "l" type: SOFTMAX_LOSS bottom: "d" bottom: "e" })",
         R"(layer { name: "d" type: "Data" top: "d" data_param { source: "s" }
                    transform_param { scale: 0.5 mean_file: "m" crop_size: 3 mirror: true } }
            layer { name: "l" type: "SoftmaxWithLoss" bottom: "d" bottom: "e" })"},
        {"batch_norm_specs",
         R"(layer { name: "b" type: "BatchNorm" bottom: "x" top: "y" param { lr_mult: 1 }
                    param { lr_mult: 1 } param { lr_mult: 1 } })",
         R"(layer { name: "b" type: "BatchNorm" bottom: "x" top: "y"
                    param { lr_mult: 0 decay_mult: 0 } param { lr_mult: 0 decay_mult: 0 }
                    param { lr_mult: 0 decay_mult: 0 } })"},
        {"new_already", R"(name: "n" layer { name: "r" type: "ReLU" bottom: "x" top: "x" })",
         R"(name: "n" layer { name: "r" type: "ReLU" bottom: "x" top: "x" })"}}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(UpgradeSolver, TypeAndNetInside) {
  const TestFolder folder;
  folder.write("old",
               "base_lr: 0.5 solver_type: NESTEROV net_param { layers { name: 'r' type: RELU } }");
  const Ended ended =
      run_program("upgrade_solver_proto_text", {"old", "new"}, {.folder = folder.path()});
  EXPECT_EQ(ended.status, 0) << ended.err;
  SolverParameter solver;
  parse_text("base_lr: 0.5 type: 'Nesterov' net_param { layer { name: 'r' type: 'ReLU' } }", "f",
             &solver);
  EXPECT_EQ(read_file(folder / "new"), write_text(solver));
}

TEST(UpgradeTools, RefuseWhatTheyCannotRead) {
  const TestFolder folder;
  folder.write("mixed", "layer { name: 'a' type: 'ReLU' } layers { name: 'b' type: RELU }");
  folder.write("both", "type: 'SGD' solver_type: SGD");
  folder.write("text", "name: 'n' layer { name: 'a' }");
  folder.write("broken", "layer { name: 'a' ");
  struct Row {
    const char *tool, *in, *error;
  };
  for (const Row& row :
       std::vector<Row>{{"upgrade_net_proto_text", "mixed", "a net uses one of the two"},
                        {"upgrade_net_proto_text", "broken", "broken:"},
                        {"upgrade_net_proto_text", "none", "none: No such file"},
                        {"upgrade_net_proto_binary", "text",
                         "text: is a text file (prototxt), a binary net is needed"},
                        {"upgrade_solver_proto_text", "both", "both: gives both type"}}) {
    const Ended ended = run_program(row.tool, {row.in, "new"}, {.folder = folder.path()});
    EXPECT_EQ(ended.status, 1) << row.in;
    EXPECT_HAS(ended.err, row.error);
    EXPECT_FALSE(folder.has("new"));
    EXPECT_EQ(run_program(row.tool, {row.in}, {.folder = folder.path()}).status, 1);
  }
}

}  // namespace
}  // namespace crema
