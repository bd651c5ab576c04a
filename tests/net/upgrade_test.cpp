// Each upgrade: old text in, the text that it must become out; then what is refused.
#include "net/upgrade.h"

#include <gtest/gtest.h>

#include "io/prototxt.h"
#include "io/scratch.h"

namespace crema {
namespace {

NetParameter parsed(const std::string& text) {
  NetParameter net;
  parse_text(text, "f", &net);
  return net;
}

struct Upgrade {
  const char* name;
  const char* old_text;
  const char* new_text;
  int notes = 1;  // lines of the log
};

std::ostream& operator<<(std::ostream& out, const Upgrade& row) { return out << row.name; }

class Upgrades : public testing::TestWithParam<Upgrade> {};

TEST_P(Upgrades, GiveTheNewText) {
  NetParameter net = parsed(GetParam().old_text);
  LogLines log;
  upgrade_net(net, "f");
  EXPECT_EQ(write_text(net), write_text(parsed(GetParam().new_text)));
  EXPECT_EQ(log.lines.size(), static_cast<size_t>(GetParam().notes));
  upgrade_net(net, "f");
  EXPECT_EQ(log.lines.size(), static_cast<size_t>(GetParam().notes));
}

INSTANTIATE_TEST_SUITE_P(
    Net, Upgrades,
    testing::ValuesIn(std::vector<Upgrade>{
        {"nothing_to_do", R"(name: "n" layer { name: "a" type: "ReLU" })",
         R"(name: "n" layer { name: "a" type: "ReLU" })", 0},
        {"v1_layer",
         R"(name: "n"
            layers { name: "c" type: CONVOLUTION bottom: "d" top: "c" blobs_lr: 1 blobs_lr: 2
                     weight_decay: 1 weight_decay: 0 convolution_param { num_output: 3 pad: 1 }
                     include { phase: TRAIN } exclude { stage: "x" } loss_weight: 2
                     blobs { num: 1 data: 5 } }
            layers { name: "l" type: SOFTMAX_LOSS bottom: "c" loss_param { ignore_label: 3 } })",
         R"(name: "n"
            layer { name: "c" type: "Convolution" bottom: "d" top: "c"
                    param { lr_mult: 1 decay_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
                    convolution_param { num_output: 3 pad: 1 }
                    include { phase: TRAIN } exclude { stage: "x" } loss_weight: 2
                    blobs { num: 1 data: 5 } }
            layer { name: "l" type: "SoftmaxWithLoss" bottom: "c" loss_param { ignore_label: 3 } })"},
        {"v1_sharing",
         R"(layers { name: "a" type: INNER_PRODUCT param: "w" param: "" blob_share_mode: STRICT
                     blob_share_mode: PERMISSIVE blobs_lr: 3 })",
         R"(layer { name: "a" type: "InnerProduct" param { name: "w" share_mode: STRICT lr_mult: 3 }
                    param { name: "" share_mode: PERMISSIVE } })"},
        {"v1_data",
         R"(layers { name: "d" type: IMAGE_DATA image_data_param { source: "s" mean_file: "m"
                     crop_size: 5 mirror: true scale: 0.5 } })",
         R"(layer { name: "d" type: "ImageData" image_data_param { source: "s" } transform_param {
                     mean_file: "m" crop_size: 5 mirror: true scale: 0.5 } })",
         2},
        {"v2_transform_fields",
         R"(layer { name: "d" type: "Data" data_param { source: "s" scale: 2 crop_size: 4 }
                    transform_param { crop_size: 8 mirror: true } }
            layer { name: "w" type: "WindowData" window_data_param { scale: 3 } })",
         R"(layer { name: "d" type: "Data" data_param { source: "s" }
                    transform_param { scale: 2 crop_size: 8 mirror: true } }
            layer { name: "w" type: "WindowData" window_data_param { }
                    transform_param { scale: 3 } })"},
        {"input_dim",
         R"(input: "a" input: "b" input_dim: 1 input_dim: 3 input_dim: 4 input_dim: 5
            input_dim: 2 input_dim: 1 input_dim: 1 input_dim: 1 layer { name: "x" }
            layer { name: "y" })",
         R"(layer { name: "input" type: "Input" top: "a" top: "b" input_param {
              shape { dim: [1, 3, 4, 5] } shape { dim: [2, 1, 1, 1] } } }
            layer { name: "x" } layer { name: "y" })"},
        {"input_shape", R"(input: "a" input_shape { dim: 7 dim: 2 } layer { name: "x" })",
         R"(layer { name: "input" type: "Input" top: "a" input_param { shape { dim: [7, 2] } } }
            layer { name: "x" })"},
        {"input_shape_wins_over_input_dim",
         R"(input: "a" input_dim: [1, 2, 3, 4] input_shape { dim: 7 } layer { name: "x" })",
         R"(layer { name: "input" type: "Input" top: "a" input_param { shape { dim: 7 } } }
            layer { name: "x" })",
         2},
        {"sizes_without_input", R"(input_dim: [1, 2] input_shape { dim: 7 } layer { name: "x" })",
         R"(layer { name: "x" })"},
        {"input_without_shape", R"(input: "a" layer { name: "x" })", R"(layer { name: "x" })"},
        {"input_of_a_v1_net",
         R"(input: "a" input_dim: [1, 2, 3, 4] layers { name: "x" type: TANH })",
         R"(layer { name: "input" type: "Input" top: "a"
                    input_param { shape { dim: [1, 2, 3, 4] } } }
            layer { name: "x" type: "TanH" })",
         2},
        {"batch_norm",
         R"(layer { name: "b" type: "BatchNorm" param { name: "m" lr_mult: 1 } param { }
                    param { decay_mult: 2 } })",
         R"(layer { name: "b" type: "BatchNorm" param { name: "m" lr_mult: 0 decay_mult: 0 }
                    param { lr_mult: 0 decay_mult: 0 } param { lr_mult: 0 decay_mult: 0 } })"},
        {"batch_norm_already_frozen",
         R"(layer { type: "BatchNorm" param { lr_mult: 0 decay_mult: 0 }
              param { lr_mult: 0 decay_mult: 0 } param { lr_mult: 0 decay_mult: 0 } })",
         R"(layer { type: "BatchNorm" param { lr_mult: 0 decay_mult: 0 }
              param { lr_mult: 0 decay_mult: 0 } param { lr_mult: 0 decay_mult: 0 } })",
         0},
        {"batch_norm_with_scale_bias",
         R"(layer { type: "BatchNorm" batch_norm_param { scale_bias: true } param { lr_mult: 1 }
              param { } param { } param { lr_mult: 2 } param { lr_mult: 3 } })",
         R"(layer { type: "BatchNorm" batch_norm_param { scale_bias: true }
              param { lr_mult: 0 decay_mult: 0 } param { lr_mult: 0 decay_mult: 0 }
              param { lr_mult: 0 decay_mult: 0 } param { lr_mult: 2 } param { lr_mult: 3 } })"},
        {"holes_of_two_axes",
         R"(layer { name: "c" convolution_param { hole_w: 3 hole_h: 2 kernel_size: 3 } })",
         R"(layer { name: "c" convolution_param { dilation: 2 dilation: 3 kernel_size: 3 } })"},
        {"hole_of_one_axis",
         R"(layers { name: "c" type: CONVOLUTION convolution_param { hole: 4 hole_w: 1 } })",
         R"(layer { name: "c" type: "Convolution" convolution_param { dilation: 4 dilation: 1 } })",
         2},
        {"short_side",
         R"(layer { name: "d" type: "ImageData" image_data_param { source: "s" short_side: 256 } }
            layer { name: "e" type: "ImageData" image_data_param { short_side: 0 } })",
         R"(layer { name: "d" type: "ImageData" image_data_param { source: "s" }
                    transform_param { resize_param { resize_mode: FIT_SMALL_SIZE height: 256
                                                     width: 256 interp_mode: LINEAR } } }
            layer { name: "e" type: "ImageData" image_data_param { } })"},
        {"class_weighting",
         R"(layer { name: "l" loss_param { weight_by_label_freqs: true class_weighting: [0.5, 2]
                    ignore_label: 3 } }
            layer { name: "m" loss_param { weight_by_label_freqs: false } })",
         R"(layer { name: "l" loss_param { class_weight: [0.5, 2] ignore_label: 3 } }
            layer { name: "m" loss_param { } })"},
        {"class_weighting_without_the_switch",
         R"(layer { name: "l" loss_param { class_weighting: [0.5, 2] } }
            layer { name: "m" loss_param { weight_by_label_freqs: true } })",
         R"(layer { name: "l" loss_param { } } layer { name: "m" loss_param { } })", 2},
        {"v1_types_of_forks",
         R"(layers { name: "a" type: INTERP interp_param { zoom_factor: 2 } }
            layers { name: "b" type: PRELU prelu_param { channel_shared: true } }
            layers { name: "c" type: RESHAPE reshape_param { axis: 1 } }
            layers { name: "d" type: ROI_POOLING roi_pooling_param { pooled_h: 2 } }
            layers { name: "e" type: SMOOTH_L1_LOSS smooth_l1_loss_param { sigma: 3 } }
            layers { name: "f" type: TRIPLET_LOSS triplet_loss_param { margin: 2 } }
            layers { name: "g" type: CROP crop_param { offset: 3 } })",
         R"(layer { name: "a" type: "Interp" interp_param { zoom_factor: 2 } }
            layer { name: "b" type: "PReLU" prelu_param { channel_shared: true } }
            layer { name: "c" type: "Reshape" reshape_param { axis: 1 } }
            layer { name: "d" type: "ROIPooling" roi_pooling_param { pooled_h: 2 } }
            layer { name: "e" type: "SmoothL1Loss" smooth_l1_loss_param { sigma: 3 } }
            layer { name: "f" type: "TripletLoss" triplet_loss_param { margin: 2 } }
            layer { name: "g" type: "Crop" crop_param { offset: 3 } })"},
        {"v1_crop_without_an_offset",
         R"(layers { name: "c" type: CONVOLUTION bottom: "x" top: "y"
                     convolution_param { kernel_size: 3 pad_h: 6 pad_w: 4 } }
            layers { name: "k" type: CROP bottom: "y" bottom: "x" top: "z" })",
         R"(layer { name: "c" type: "Convolution" bottom: "x" top: "y"
                    convolution_param { kernel_size: 3 pad_h: 6 pad_w: 4 } }
            layer { name: "k" type: "Crop" bottom: "y" bottom: "x" top: "z"
                    crop_param { offset: 5 offset: 3 } })",
         2},
        {"v2_crop_without_an_offset",
         R"(layer { name: "k" type: "Crop" bottom: "y" bottom: "x" top: "z" })",
         R"(layer { name: "k" type: "Crop" bottom: "y" bottom: "x" top: "z" })", 0},
        {"batch_norm_with_two_specs",
         R"(layer { type: "BatchNorm" param { lr_mult: 1 } param { lr_mult: 1 } })",
         R"(layer { type: "BatchNorm" param { lr_mult: 1 } param { lr_mult: 1 } })", 0},
        {"v0_layers",
         R"(layers { layer { name: "d" type: "data" source: "s" batchsize: 4 cropsize: 3
                             meanfile: "m" scale: 2 mirror: true rand_skip: 5 } top: "d" top: "l" }
            layers { layer { name: "p" type: "padding" pad: 2 } bottom: "d" top: "p" }
            layers { layer { name: "c" type: "conv" num_output: 3 kernelsize: 5 stride: 2 group: 1
                             biasterm: false weight_filler { type: "xavier" } blobs_lr: 1
                             weight_decay: 0 } bottom: "p" top: "c" }
            layers { layer { name: "q" type: "pool" pool: AVE kernelsize: 2 stride: 2 }
                     bottom: "c" top: "q" }
            layers { layer { name: "n" type: "lrn" local_size: 3 alpha: 0.1 beta: 0.5 }
                     bottom: "q" top: "n" }
            layers { layer { name: "i" type: "innerproduct" num_output: 10 bias_filler { value: 1 } }
                     bottom: "n" top: "i" }
            layers { layer { name: "o" type: "dropout" dropout_ratio: 0.3 } bottom: "i" top: "i" }
            layers { layer { name: "s" type: "softmax_loss" } bottom: "i" bottom: "l" })",
         R"(layer { name: "d" type: "Data" top: "d" top: "l"
                    data_param { source: "s" batch_size: 4 rand_skip: 5 }
                    transform_param { crop_size: 3 mean_file: "m" scale: 2 mirror: true } }
            layer { name: "c" type: "Convolution" bottom: "d" top: "c"
                    param { lr_mult: 1 decay_mult: 0 }
                    convolution_param { num_output: 3 pad: 2 kernel_size: 5 stride: 2 group: 1
                                        bias_term: false weight_filler { type: "xavier" } } }
            layer { name: "q" type: "Pooling" bottom: "c" top: "q"
                    pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
            layer { name: "n" type: "LRN" bottom: "q" top: "n"
                    lrn_param { local_size: 3 alpha: 0.1 beta: 0.5 } }
            layer { name: "i" type: "InnerProduct" bottom: "n" top: "i"
                    inner_product_param { num_output: 10 bias_filler { value: 1 } } }
            layer { name: "o" type: "Dropout" bottom: "i" top: "i"
                    dropout_param { dropout_ratio: 0.3 } }
            layer { name: "s" type: "SoftmaxWithLoss" bottom: "i" bottom: "l" })",
         3},
        {"v0_images_and_windows",
         R"(layers { layer { name: "a" type: "images" source: "s" batchsize: 2 new_height: 8
                             new_width: 9 shuffle_images: true } top: "a" top: "l" }
            layers { layer { name: "w" type: "window_data" source: "s" det_fg_threshold: 0.4
                             det_context_pad: 3 } top: "w" top: "m" })",
         R"(layer { name: "a" type: "ImageData" top: "a" top: "l" image_data_param {
                     source: "s" batch_size: 2 new_height: 8 new_width: 9 shuffle: true } }
            layer { name: "w" type: "WindowData" top: "w" top: "m" window_data_param {
                     source: "s" fg_threshold: 0.4 context_pad: 3 } })",
         2}}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(UpgradeNet, FieldsOfForksExcludeOurs) {
  NetParameter net = parsed(
      "layer { name: \"d\" type: \"ImageData\" image_data_param { short_side: 9 new_height: 5 } }");
  EXPECT_EQ(error_of([&] { upgrade_net(net, "f"); }),
            "f:1: layer \"d\" (ImageData): short_side: stands beside another size for the picture; "
            "give one of them");
  net = parsed("layers { name: \"k\" type: CROP bottom: \"a\" bottom: \"b\" top: \"c\" }");
  EXPECT_EQ(error_of([&] { upgrade_net(net, "f"); }),
            "f:1: layer \"k\" (Crop): where bottom 0 is to be cut cannot be worked out: write "
            "crop_param { offset: ... }");
}

TEST(UpgradeNet, KeepsThePlaceOfOldLayers) {
  NetParameter net = parsed("\n\nlayers { name: \"a\" type: RELU }\n");
  upgrade_net(net, "f");
  EXPECT_EQ(net.layer(0).source_location(), "f:3");
}

TEST(UpgradeNet, EveryOldTypeHasAName) {
  const std::vector<std::string> modern = {"AbsVal",
                                           "Accuracy",
                                           "ArgMax",
                                           "BNLL",
                                           "Concat",
                                           "ContrastiveLoss",
                                           "Convolution",
                                           "Data",
                                           "Deconvolution",
                                           "Dropout",
                                           "DummyData",
                                           "EuclideanLoss",
                                           "Eltwise",
                                           "Exp",
                                           "Flatten",
                                           "HDF5Data",
                                           "HDF5Output",
                                           "HingeLoss",
                                           "Im2col",
                                           "ImageData",
                                           "InfogainLoss",
                                           "InnerProduct",
                                           "LRN",
                                           "MemoryData",
                                           "MultinomialLogisticLoss",
                                           "MVN",
                                           "Pooling",
                                           "Power",
                                           "ReLU",
                                           "Sigmoid",
                                           "SigmoidCrossEntropyLoss",
                                           "Silence",
                                           "Softmax",
                                           "SoftmaxWithLoss",
                                           "Split",
                                           "Slice",
                                           "TanH",
                                           "WindowData",
                                           "Threshold",
                                           "BN",
                                           "Upsample",
                                           "Crop",
                                           "Interp",
                                           "PReLU",
                                           "Reshape",
                                           "ROIPooling",
                                           "SmoothL1Loss",
                                           "TripletLoss"};
  const auto* types = V1LayerParameter::LayerType_descriptor();
  ASSERT_EQ(static_cast<size_t>(types->value_count()), modern.size() + 1);  // NONE
  NetParameter net;
  for (int i = 1; i < types->value_count(); ++i) {
    V1LayerParameter& layer = *net.add_layers();
    layer.set_type(static_cast<V1LayerParameter::LayerType>(types->value(i)->number()));
    layer.mutable_crop_param();  // a Crop without it looks for layers before it
  }
  upgrade_net(net, "f");
  for (size_t i = 0; i < modern.size(); ++i) {
    EXPECT_EQ(net.layer(static_cast<int>(i)).type(), modern[i]);
  }
}

TEST(UpgradeNet, Refusals) {
  auto refusal = [](const std::string& text) {
    NetParameter net = parsed(text);
    return error_of([&] { upgrade_net(net, "f"); });
  };
  EXPECT_EQ(refusal("layer { name: \"a\" }\nlayers { name: \"b\" }"),
            "f:2: `layers` (old syntax) stands beside `layer` (f:1): a net uses one of the two");
  EXPECT_EQ(refusal("input: \"a\" input_dim: [1, 2, 3]"),
            "f: has 1 input and 3 input_dim: 4 are needed for each input");
  EXPECT_EQ(refusal("input: \"a\" input: \"b\" input_shape { dim: 1 }"),
            "f: has 2 input and 1 input_shape: as many are needed");
  EXPECT_EQ(refusal("\nlayers { layer { name: \"x\" type: \"convv\" } }"),
            "f:2: layer \"x\" (convv): no layer type of the oldest syntax (did you mean conv?)");
  EXPECT_EQ(refusal("layers { layer { name: \"p\" type: \"padding\" pad: 1 } bottom: \"d\" top: "
                    "\"p\" }\nlayers { layer { name: \"r\" type: \"relu\" } bottom: \"p\" }"),
            "f:2: layer \"r\" (relu): cannot read \"p\": a padding layer goes before conv or pool "
            "only");
}

TEST(UpgradeWeights, InputFieldsAreDropped) {
  NetParameter net = parsed("input: \"a\" input_dim: [1, 2, 3] layers { name: \"x\" type: BNLL }");
  upgrade_weights(net, "f");
  EXPECT_EQ(write_text(net), "layer {\n  name: \"x\"\n  type: \"BNLL\"\n}\n");
}

TEST(UpgradeSolver, TypeAndNets) {
  SolverParameter solver;
  parse_text("solver_type: RMSPROP net_param { layers { name: \"x\" type: BNLL } }", "s", &solver);
  LogLines log;
  upgrade_solver(solver, "s");
  EXPECT_EQ(solver.type(), "RMSProp");
  EXPECT_FALSE(solver.has_solver_type());
  EXPECT_EQ(solver.net_param().layer(0).type(), "BNLL");
  EXPECT_EQ(log.lines[0], "s: solver_type is taken as type: \"RMSProp\"");
  parse_text("type: \"SGD\" solver_type: ADAM", "s", &solver);
  EXPECT_EQ(error_of([&] { upgrade_solver(solver, "s"); }),
            "s: gives both type (\"SGD\") and the old solver_type (ADAM), one of them is needed");
}

TEST(UpgradeSolver, EveryOldType) {
  for (const auto& [old_type, type] :
       {std::pair{"SGD", "SGD"}, std::pair{"NESTEROV", "Nesterov"}, std::pair{"ADAGRAD", "AdaGrad"},
        std::pair{"RMSPROP", "RMSProp"}, std::pair{"ADADELTA", "AdaDelta"},
        std::pair{"ADAM", "Adam"}}) {
    SolverParameter solver;
    parse_text(str("solver_type: ", old_type), "s", &solver);
    upgrade_solver(solver, "s");
    EXPECT_EQ(solver.type(), type);
  }
}

}  // namespace
}  // namespace crema
