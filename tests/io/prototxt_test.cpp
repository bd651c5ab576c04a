// Prototxt in: what is read, and one row for each kind of mistake with the message it must give.
#include "io/prototxt.h"

#include <gtest/gtest.h>

#include "io/scratch.h"

namespace crema {
namespace {

template <class Proto>
std::string mistake(const std::string& text, bool strict = false) {
  Proto proto;
  return error_of([&] { parse_text(text, "f", &proto, {.strict = strict}); });
}

struct Mistake {
  const char* name;
  const char* text;
  const char* error;
  bool strict = false;
};

std::ostream& operator<<(std::ostream& out, const Mistake& row) { return out << row.name; }

class NetMistakes : public testing::TestWithParam<Mistake> {};
class SolverMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(NetMistakes, GiveTheirMessage) {
  EXPECT_EQ(mistake<NetParameter>(GetParam().text, GetParam().strict), GetParam().error);
}

TEST_P(SolverMistakes, GiveTheirMessage) {
  EXPECT_EQ(mistake<SolverParameter>(GetParam().text), GetParam().error);
}

const auto kName = [](const auto& row) { return std::string(row.param.name); };

INSTANTIATE_TEST_SUITE_P(
    Prototxt, NetMistakes,
    testing::ValuesIn(std::vector<Mistake>{
        {"empty", "", "f: is empty, a text with the net is needed"},
        {"only_comments", "# nothing\n\n", "f: is empty, a text with the net is needed"},
        {"misspelled_in_layer", "layer {\n  nmae: \"x\"\n}\n",
         "f:2: nmae is not a field of layer (LayerParameter) (did you mean name?)"},
        {"misspelled_in_param", "layer {\n  convolution_param {\n    kernal_size: 3\n  }\n}\n",
         "f:3: kernal_size is not a field of convolution_param (ConvolutionParameter) (did you "
         "mean kernel_size?)"},
        {"misspelled_in_net", "naem: \"x\"\n",
         "f:1: naem is not a field of the net (NetParameter) (did you mean name?)"},
        {"unknown_outside_a_layer", "brand_new_thing: 4\n",
         "f:1: brand_new_thing is not a field of the net (NetParameter)"},
        {"all_in_one_run",
         "nme: \"x\"\nlayer {\n  botom: \"a\"\n  pooling_param { pool: MAXX\n  stide: 2 }\n}\n",
         "f:1: nme is not a field of the net (NetParameter) (did you mean name?)\n"
         "f:3: botom is not a field of layer (LayerParameter) (did you mean bottom?)\n"
         "f:4: pool takes MAX, AVE or STOCHASTIC, not MAXX (did you mean MAX?)\n"
         "f:5: stide is not a field of pooling_param (PoolingParameter) (did you mean stride?)"},
        {"fork_field_strict", "layer {\n  fork_only_param { a: 1 b { c: 2 } }\n}\n",
         "f:2: fork_only_param is not a field of layer (LayerParameter)", true},
        {"solver_given", "base_lr: 0.1\nnet: \"x\"\n",
         "f:1: base_lr is not a field of the net (NetParameter): it belongs to a solver\n"
         "f:2: net is not a field of the net (NetParameter): it belongs to a solver"},
        {"enum_in_quotes", "layer { pooling_param { pool: \"AVE\" } }",
         "f:1: pool takes MAX, AVE or STOCHASTIC, not \"AVE\" (leave out the quotes)"},
        {"old_type", "layers { type: CONVOLUTON }",
         "f:1: type takes one of the names of LayerType, not CONVOLUTON (did you mean "
         "CONVOLUTION?)"},
        {"enum_number", "layer { pooling_param { pool: 7 } }",
         "f:1: pool takes MAX, AVE or STOCHASTIC, not 7"},
        {"type_without_quotes", "layer { type: Convolution }",
         "f:1: type takes a text in quotes, not Convolution"},
        {"text_for_number", "layer {\n convolution_param { num_output: \"20\" }\n}",
         "f:2: num_output takes a whole number from 0 up, not \"20\""},
        {"word_for_number", "layer { dropout_param { dropout_ratio: half } }",
         "f:1: dropout_ratio takes a number, not half"},
        {"fraction_for_whole", "layer { convolution_param { num_output: 2.5 } }",
         "f:1: num_output takes a whole number from 0 up, not 2.5"},
        {"negative_for_unsigned", "layer { convolution_param { pad: -1 } }",
         "f:1: pad takes a whole number from 0 up, not -1"},
        {"too_large", "layer { concat_param { axis: 3000000000 } }",
         "f:1: axis takes a whole number, not 3000000000"},
        {"yes_for_true", "force_backward: yes\n",
         "f:1: force_backward takes true or false, not yes"},
        {"number_for_block", "layer { convolution_param: 3 }",
         "f:1: convolution_param takes a block { ... }, not 3"},
        {"block_for_number", "layer { top { a: 1 } bottom: \"x\" botom: \"y\" }",
         "f:1: top takes a text in quotes, not a block\n"
         "f:1: botom is not a field of layer (LayerParameter) (did you mean bottom?)"},
        {"twice", "layer {\n name: \"a\"\n name: \"b\"\n}",
         "f:3: name is given twice in layer, first at line 2: it takes one value"},
        {"list_for_one", "layer { lrn_param { local_size: [3, 5] } }",
         "f:1: local_size takes a whole number from 0 up, not a list"},
        {"required", "layer {\n clip_param { min: 1 }\n}", "f:2: clip_param needs max"},
        {"no_colon", "layer { name \"x\" }", "f:1: : is missing after name, before \"x\""},
        {"no_value", "layer { name: }", "f:1: name takes a text in quotes, not }"},
        {"no_brace", "layer\n name: \"x\"", "f:2: { is missing after layer, before name"},
        {"open_text", "layer { name: \"conv\n}",
         "f:1: the text that begins with \"conv\n} is not "
         "closed by a quote on its line"},
        {"truncated", "layer {\n  name: \"a\"\n  convolution_param {\n    num_output: 3\n",
         "f:5: the file ends inside convolution_param, which opened at line 3: a closing } is "
         "missing"},
        {"missing_brace",
         "layer {\n  convolution_param {\n    num_output: 3\n}\nlayer {\n  name: \"b\"\n}\n",
         "f:5: layer stands inside layer, which opened at line 1: a closing } is missing before "
         "it"},
        {"surplus_brace", "layer { name: \"a\" } }\n", "f:1: } closes nothing"},
        {"wrong_brace", "layer < name: \"a\" }\n",
         "f:1: } cannot close layer, which opened at line 1"},
        {"template_dollar", "name: \"x\"\nlayer {\n  data_param { source: \"${EXP}/lmdb\" }\n}",
         "f:3:25: ${EXP} is a placeholder of a template: put its value there"},
        {"template_braces", "layer {\n  convolution_param { num_output: {{n_out}} }\n}",
         "f:2:35: {{n_out}} is a placeholder of a template: put its value there"},
        {"hdf5_backend", "layer { data_param { backend: HDF5 } }",
         "f:1: backend takes LEVELDB or LMDB, not HDF5: HDF5 files are read by a layer of type "
         "\"HDF5Data\""},
        {"old_type_of_a_fork", "layers { type: DENSE_IMAGE_DATA }\nlayers { type: POOLING3D }",
         "f:1: type takes one of the names of LayerType, not DENSE_IMAGE_DATA (a layer of SegNet's "
         "Caffe)\nf:2: type takes one of the names of LayerType, not POOLING3D (a layer of C3D)"},
        {"utf16", "\xff\xfel", "f: is UTF-16 text: save it as UTF-8"}}),
    kName);

INSTANTIATE_TEST_SUITE_P(
    Prototxt, SolverMistakes,
    testing::ValuesIn(std::vector<Mistake>{
        {"misspelled", "bsae_lr: 0.1\n",
         "f:1: bsae_lr is not a field of the solver (SolverParameter) (did you mean base_lr?)"},
        {"unknown", "brand_new_thing: 4\n",
         "f:1: brand_new_thing is not a field of the solver (SolverParameter)"},
        {"net_given", "layer { name: \"x\" }\n",
         "f:1: layer is not a field of the solver (SolverParameter): it belongs to a net"},
        {"device_list", "device_id: [0, 1]\n",
         "f:1: device_id takes a whole number, not a list: several GPUs are named on the command "
         "line, --gpu=0,1"},
        {"devices_in_a_text", "device_id: \"0,1\"\n",
         "f:1: device_id takes a whole number, not \"0,1\": several GPUs are named on the command "
         "line, --gpu=0,1"},
        {"two_devices", "device_id: 0\ndevice_id: 1\n",
         "f:2: device_id is given twice in the solver, first at line 1: it takes one value: "
         "several "
         "GPUs are named on the command line, --gpu=0,1"},
        {"mode", "solver_mode: GPUS\n",
         "f:1: solver_mode takes CPU or GPU, not GPUS (did you mean GPU?)"},
        {"in_nested_layer", "net_param {\n layer { nmae: \"x\" } }\n",
         "f:2: nmae is not a field of layer (LayerParameter) (did you mean name?)"}}),
    kName);

TEST(Prototxt, ForkFieldsInsideALayerAreLoggedOnce) {
  LogLines log;
  NetParameter net;
  parse_text(
      "layer { name: \"a\" fork_only_param { x: -1 y: [1, 2] z < w: 'q' \"r\" > } }\n"
      "layer { name: \"b\" fork_only_param { x: 1 } convolution_param { secret_switch: true } }\n",
      "f", &net);
  EXPECT_EQ(net.layer_size(), 2);
  EXPECT_EQ(net.layer(1).name(), "b");
  EXPECT_EQ(log.lines,
            (std::vector<std::string>{
                "f:1: fork_only_param is not a field of layer (LayerParameter): ignored (2 times)",
                "f:2: secret_switch is not a field of convolution_param (ConvolutionParameter): "
                "ignored"}));
}

/// The layer's type is the mistake to tell, so its fields are no misspelled ones of ours.
TEST(Prototxt, BlocksOfForksThatAreNearToOurs) {
  LogLines log;
  NetParameter net;
  parse_text("layer { type: \"Resample\" resample_param { type: LINEAR } }", "f", &net);
  EXPECT_EQ(net.layer(0).type(), "Resample");
  EXPECT_EQ(log.lines,
            (std::vector<std::string>{
                "f:1: resample_param is not a field of layer (LayerParameter): ignored"}));
}

/// shicai's DenseNet, NVCaffe's ResNet, DeepLab.
TEST(Prototxt, FieldsOfForksThatMeanOneOfOurs) {
  NetParameter net;
  parse_text(
      "layer { pooling_param { ceil_mode: false kernel_size: 3 } }\n"
      "layer { pooling_param { stride: 2, ceil_mode: true } }\n"
      "layer { pooling_param { torch_pooling: true } }\n"
      "layer { convolution_param { hole: 2 kernel_size: 3 } }\nlayer { name: 'hole' }\n"
      "layers { softmaxloss_param { ignore_label: 2 } }",
      "f", &net);
  EXPECT_EQ(net.layer(0).pooling_param().round_mode(), PoolingParameter::FLOOR);
  EXPECT_EQ(net.layer(0).pooling_param().kernel_size(), 3u);
  EXPECT_EQ(net.layer(1).pooling_param().round_mode(), PoolingParameter::CEIL);
  EXPECT_TRUE(net.layer(1).pooling_param().has_round_mode());
  EXPECT_EQ(net.layer(2).pooling_param().round_mode(), PoolingParameter::FLOOR);
  EXPECT_EQ(net.layer(3).convolution_param().dilation(0), 2u);
  EXPECT_EQ(net.layer(4).name(), "hole");
  EXPECT_EQ(net.layer(4).source_location(), "f:5");
  EXPECT_EQ(net.layers(0).loss_param().ignore_label(), 2);
  EXPECT_EQ(mistake<NetParameter>("layer { pooling_param {\n ceil_mode: 3 } }"),
            "f:2: ceil_mode takes true or false, not 3");
  EXPECT_EQ(mistake<NetParameter>("layer { pooling_param {\n ceil_mode: true ceil_mode: true } }"),
            "f:2: ceil_mode is given twice in pooling_param, first at line 2: it takes one value");
}

TEST(Prototxt, EnginesAndHintsOfForksAreLogged) {
  LogLines log;
  NetParameter net;
  parse_text(
      "default_cudnn_math_override: 1\nlayer { relu_param { engine: MKL2017 } }\n"
      "layer { relu_param { engine: MKL2017 negative_slope: 1 } }\nmem_param { optimize_train: 1 }",
      "f", &net);
  EXPECT_EQ(net.layer(0).relu_param().engine(), ReLUParameter::DEFAULT);
  EXPECT_EQ(net.layer(1).relu_param().negative_slope(), 1);
  SolverParameter solver;
  parse_text("solver_data_type: FLOAT16 test_and_snapshot_last_epochs: 2 base_lr: 2", "s", &solver);
  EXPECT_EQ(solver.base_lr(), 2);
  EXPECT_EQ(
      log.lines,
      (std::vector<std::string>{
          "f:1: default_cudnn_math_override is not a field of the net (NetParameter): ignored",
          "f:2: engine MKL2017 belongs to another Caffe: ignored (2 times)",
          "f:4: mem_param is not a field of the net (NetParameter): ignored",
          "s:1: solver_data_type is not a field of the solver (SolverParameter): ignored",
          "s:1: test_and_snapshot_last_epochs is not a field of the solver "
          "(SolverParameter): ignored"}));
  EXPECT_EQ(mistake<NetParameter>("layer { relu_param { engine: MKLDNN } }", true),
            "f:1: engine takes DEFAULT, CAFFE or CUDNN, not MKLDNN");
  EXPECT_EQ(mistake<NetParameter>("mem_param {}", true),
            "f:1: mem_param is not a field of the net (NetParameter)");
}

TEST(Prototxt, AllOfTheTextFormatIsRead) {
  NetParameter net;
  parse_text(
      "name: 'a' \"b\" # comment { \"\n"
      "layer: < name: \"x\", loss_weight: [1, -2.5e-3f, inf]; top: \"t\\\"{\" >\n"
      "layer { power_param { power: .5 scale: 1e3 shift: -nan } blobs { data: 0.1 } }\n"
      "layer { convolution_param { pad: 0x10 pool_size_of_a_fork: 1 } phase: 1 }\n",
      "f", &net);
  EXPECT_EQ(net.name(), "ab");
  EXPECT_FLOAT_EQ(net.layer(0).loss_weight(1), -2.5e-3f);
  EXPECT_EQ(net.layer(0).top(0), "t\"{");
  EXPECT_EQ(net.layer(2).convolution_param().pad(0), 16u);
  EXPECT_EQ(net.layer(2).phase(), TEST);
}

TEST(Prototxt, ByteOrderMarkAndCrLfAreAccepted) {
  NetParameter net;
  parse_text("\xef\xbb\xbfname: \"x\"\r\nlayer {\r\n  name: \"a\"\r\n}\r\n", "f", &net);
  EXPECT_EQ(net.name(), "x");
  EXPECT_EQ(net.layer(0).source_location(), "f:2");
  EXPECT_EQ(mistake<NetParameter>("\xef\xbb\xbf\r\nnmae: \"x\"\r\n"),
            "f:2: nmae is not a field of the net (NetParameter) (did you mean name?)");
}

TEST(Prototxt, LayersKnowTheirLine) {
  NetParameter net;
  parse_text("name: \"x\"\nlayer { name: \"a\" }\n\nlayer {\n name: \"b\" }\n", "dir/f", &net);
  EXPECT_EQ(net.layer(0).source_location(), "dir/f:2");
  EXPECT_EQ(net.layer(1).source_location(), "dir/f:4");
  parse_text("\nlayers { name: \"a\" }\n", "f", &net);
  EXPECT_EQ(net.layers(0).source_location(), "f:2");
  SolverParameter solver;
  parse_text("base_lr: 1\nnet_param {\n  layer { name: \"a\" }\n}\n", "s", &solver);
  EXPECT_EQ(solver.net_param().layer(0).source_location(), "s:3");
}

TEST(Prototxt, WrittenTextReadsBackWithoutPlaces) {
  SolverParameter solver;
  parse_text("base_lr: 0.01\ngamma: 0.1\ndelta: 1e-8\nnet_param { layer { name: \"a\" } }\n", "s",
             &solver);
  EXPECT_EQ(write_text(solver),
            "base_lr: 0.01\ngamma: 0.1\nnet_param {\n  layer {\n    name: \"a\"\n  }\n}\n"
            "delta: 1e-08\n");
}

TEST(Prototxt, FilesThatAreNoText) {
  const TestFolder dir;
  auto refusal = [&](const std::string& path) { return error_of([&] { read_net(path); }); };
  EXPECT_EQ(refusal(dir / "none"), dir / "none" + ": No such file or directory");
  EXPECT_EQ(refusal(dir / "."), dir / "." + ": is a directory, a file is needed");
  const std::string weights = test_data("sgd.caffemodel");
  EXPECT_EQ(refusal(weights),
            weights + ": is a weights file (.caffemodel), a text file (prototxt) is needed");
  write_file(dir / "zeros", std::string(100, '\0'));
  EXPECT_EQ(refusal(dir / "zeros"),
            dir / "zeros" + ": is binary data of no known kind, a text file (prototxt) is needed");
  write_file(dir / "lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 5\n");
  EXPECT_EQ(refusal(dir / "lfs"),
            dir / "lfs" +
                ": is a git-lfs pointer (fetch the file itself: git lfs pull), a text "
                "file (prototxt) is needed");
  write_file(dir / "empty", "");
  EXPECT_EQ(refusal(dir / "empty"), dir / "empty" + ": is empty, a text with the net is needed");
}

}  // namespace
}  // namespace crema
