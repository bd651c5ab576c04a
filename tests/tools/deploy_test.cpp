// crema deploy, classify and summary: small nets whose answers are known.
#include "net/deploy.h"

#include <cmath>

#include "base/file.h"
#include "tools/convert_testing.h"
#include "tools/crema_nets.h"
#include "tools/weights_testing.h"

namespace crema {
namespace {

constexpr const char* kTrained = R"(
  name: 'n'
  layer { name: 'd' type: 'Data' top: 'data' top: 'label' include { phase: TRAIN }
          data_param { source: 'none' batch_size: 4 } }
  layer { name: 'd' type: 'Data' top: 'data' top: 'label' include { phase: TEST }
          transform_param { crop_size: 4 mirror: true scale: 0.5 mean_value: 3 }
          data_param { source: 'db' batch_size: 2 backend: LMDB } }
  layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv' param { lr_mult: 2 }
          convolution_param { num_output: 2 kernel_size: 3 weight_filler { type: 'xavier' } } }
  layer { name: 'relu' type: 'ReLU' bottom: 'conv' top: 'conv' }
  layer { name: 'aux' type: 'InnerProduct' bottom: 'conv' top: 'aux'
          inner_product_param { num_output: 3 } }
  layer { name: 'aux_loss' type: 'SoftmaxWithLoss' bottom: 'aux' bottom: 'label' loss_weight: 0.3 }
  layer { name: 'drop' type: 'Dropout' bottom: 'conv' top: 'conv' }
  layer { name: 'ip' type: 'InnerProduct' bottom: 'conv' top: 'ip'
          inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } }
  layer { name: 'accuracy' type: 'Accuracy' bottom: 'ip' bottom: 'label' top: 'accuracy'
          include { phase: TEST } }
  layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }
)";

constexpr const char* kDeployed = R"(
  name: 'n'
  layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 1 dim: 1 dim: 4 dim: 4 } }
          transform_param { crop_size: 4 scale: 0.5 mean_value: 3 }
          image_data_param { new_height: 5 new_width: 6 } }
  layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
          convolution_param { num_output: 2 kernel_size: 3 } }
  layer { name: 'relu' type: 'ReLU' bottom: 'conv' top: 'conv' }
  layer { name: 'drop' type: 'Dropout' bottom: 'conv' top: 'conv' }
  layer { name: 'ip' type: 'InnerProduct' bottom: 'conv' top: 'ip'
          inner_product_param { num_output: 3 } }
  layer { name: 'prob' type: 'Softmax' bottom: 'ip' top: 'prob' }
)";

std::string canonical(const std::string& text) {
  NetParameter net;
  parse_text(text, "f", &net);
  return write_text(net);
}

void write_trained(const TestFolder& folder) {
  folder.write("net.prototxt", kTrained);
  testing::write_database(folder / "db", {{"0", testing::ramp_datum(1, 5, 6, 1)}});
}

TEST(Deploy, KeepsWhatLeadsToTheProbabilities) {
  const TestFolder folder;
  write_trained(folder);
  const Ended ended = run_crema(
      folder, {"deploy", "--model=net.prototxt", "--output=d.prototxt", "--preprocessing=p.json"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(canonical(read_file(folder / "d.prototxt")), canonical(kDeployed));
  EXPECT_HAS(ended.err, "the head of \"aux_loss\" is left out: its loss_weight 0.3 is below 1");
  EXPECT_EQ(read_file(folder / "p.json"),
            "{\n  \"input\": \"data\",\n  \"shape\": [1, 1, 4, 4],\n  \"outputs\": [\"prob\"],\n"
            "  \"channel_order\": \"as stored\",\n  \"resize\": [5, 6],\n  \"centre_crop\": 4,\n"
            "  \"mean_value\": [3],\n  \"scale\": 0.5\n}\n");
}

TEST(Deploy, WithoutTheSourceTakesCropOrTheGivenShape) {
  const TestFolder folder;
  folder.write("net.prototxt", kTrained);
  Ended ended = run_crema(folder, {"deploy", "--model=net.prototxt"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_HAS(ended.err, "db: there is no such database");
  EXPECT_HAS(ended.err, "pictures of 3 4 4 are assumed");
  EXPECT_HAS(ended.out, "dim: 3\n      dim: 4");
  folder.write("net.prototxt",
               std::string(kTrained).replace(std::string(kTrained).find("crop_size: 4"), 12, ""));
  ended = run_crema(folder, {"deploy", "--model=net.prototxt"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_HAS(ended.err, "--input_shape=1,3,224,224 gives it");
  EXPECT_HAS(ended.err, "net.prototxt:5: layer \"d\" (Data)");
  ended = run_crema(folder, {"deploy", "--model=net.prototxt", "--input_shape=2,1,7,7"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_HAS(ended.out, "dim: 2\n      dim: 1\n      dim: 7");
  ended = run_crema(folder, {"deploy", "--model=net.prototxt", "--input_shape=2,x"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_HAS(ended.err, "--input_shape takes sizes above 0");
}

TEST(Deploy, SizesThatTheTransformGives) {
  const TestFolder folder;
  testing::write_database(folder / "db", {{"0", testing::ramp_datum(1, 5, 6, 1)}});
  const auto deployed = [&](const std::string& transform) {
    NetParameter net;
    parse_text(str("layer { name: 'd' type: 'Data' top: 'data' top: 'label' data_param { source: '",
                   folder / "db", "' batch_size: 2 } transform_param { ", transform,
                   " } } layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' "
                   "inner_product_param { num_output: 3 } } layer { name: 'loss' type: "
                   "'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' }"),
               "f", &net);
    const DeployNet made = derive_deploy(net, "f");
    EXPECT_EQ(join(made.notes), "");
    return made.net.layer(0).ShortDebugString();
  };
  const std::string head = "name: \"data\" type: \"Input\" top: \"data\" ";
  EXPECT_EQ(deployed("scale: 2 distort_param { } noise_param { } max_rotation: 5 crop_h: 3 "
                     "crop_w: 4 resize_param { prob: 0.5 height: 8 width: 9 }"),
            head +
                "transform_param { scale: 2 crop_h: 3 crop_w: 4 } image_data_param { "
                "new_height: 8 new_width: 9 } input_param { shape { dim: 1 dim: 1 dim: 3 dim: 4 "
                "} }");
  EXPECT_EQ(deployed("resize_param { resize_mode: FIT_LARGE_SIZE_AND_PAD height: 8 width: 9 }"),
            head +
                "transform_param { resize_param { resize_mode: FIT_LARGE_SIZE_AND_PAD height: 8 "
                "width: 9 } } input_param { shape { dim: 1 dim: 1 dim: 8 dim: 9 } }");
  EXPECT_EQ(deployed("img_rand_resize_lower: 3 img_rand_resize_upper: 5 crop_size: 3"),
            head +
                "transform_param { crop_size: 3 img_rand_resize_lower: 4 img_rand_resize_upper: "
                "4 } input_param { shape { dim: 1 dim: 1 dim: 3 dim: 3 } }");
}

TEST(Deploy, HeadsOfOtherLosses) {
  struct Row {
    const char *loss, *output, *type;
  };
  const std::string input =
      "layer { name: 'i' type: 'HDF5Data' top: 'x' top: 'y' } "
      "layer { name: 'f' type: 'InnerProduct' bottom: 'x' top: 'f' } ";
  for (const Row& row :
       {Row{"type: 'SigmoidCrossEntropyLoss' bottom: 'f' bottom: 'y'", "prob", "Sigmoid"},
        Row{"type: 'EuclideanLoss' bottom: 'y' bottom: 'f'", "f", "InnerProduct"},
        Row{"type: 'InfogainLoss' bottom: 'f' bottom: 'y'", "prob", "Softmax"},
        Row{"type: 'Accuracy' bottom: 'f' bottom: 'y'", "f", "InnerProduct"}}) {
    NetParameter net;
    parse_text(str(input, "layer { name: 'l' ", row.loss, " }"), "f", &net);
    const DeployNet deploy = derive_deploy(net, "f", Shape{1, 4});
    EXPECT_EQ(join(deploy.outputs), row.output) << row.loss;
    EXPECT_EQ(deploy.net.layer(deploy.net.layer_size() - 1).type(), row.type);
    EXPECT_EQ(deploy.net.layer(0).type(), "Input");
  }
}

TEST(Deploy, ANetWithoutDataIsRefused) {
  NetParameter net;
  parse_text("layer { name: 'p' type: 'Parameter' top: 'p' }", "f", &net);
  EXPECT_HAS(testing::error_of([&] { derive_deploy(net, "f"); }),
             "f: no data layer leads to the outputs p");
}

/// Scores of a 2 x 2 picture are its first three pixels, 1 for white.
class ClassifyTest : public ::testing::Test {
 protected:
  ClassifyTest() {
    folder_.write("net.prototxt", R"(
        layer { name: 'd' type: 'Data' top: 'data' top: 'label'
                transform_param { scale: 0.00392156863 mirror: true }
                data_param { source: 'db' batch_size: 7 backend: LMDB } }
        layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'
                inner_product_param { num_output: 3 bias_term: false } }
        layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' })");
    testing::write_database(folder_ / "db", {{"0", testing::ramp_datum(1, 2, 2, 1)}});
    folder_.write("db/labels.txt", "zero\none\ntwo\n");
    testing::write_weights(
        folder_ / "w.caffemodel",
        {{"ip", {{.shape = {3, 4}, .data = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, .diff = {}}}}});
    for (int i = 0; i < 3; ++i) {
      Picture picture{2, 2, 1, {0, 0, 0, 0}};
      picture.pixels[static_cast<size_t>(i)] = 255;
      testing::write_picture_file(folder_ / str("pictures/", i, ".png"), picture);
    }
  }
  Ended classify(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"classify", "--weights=w.caffemodel"});
    return run_crema(folder_, arguments);
  }
  TestFolder folder_;
};

TEST_F(ClassifyTest, ShowsTheLikeliestClassesWithTheirNames) {
  const Ended ended =
      classify({"--model=net.prototxt", "--top=2", "--batch=2", "pictures", "pictures/1.png"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  // e / (e + 2) = 0.5761; equal ones in the order of their numbers
  EXPECT_EQ(ended.out,
            "pictures/0.png\n  0.5761  0 zero\n  0.2119  1 one\n"
            "pictures/1.png\n  0.5761  1 one\n  0.2119  0 zero\n"
            "pictures/2.png\n  0.5761  2 two\n  0.2119  0 zero\n"
            "pictures/1.png\n  0.5761  1 one\n  0.2119  0 zero\n");
}

TEST_F(ClassifyTest, TheDeployNetGivesTheSame) {
  ASSERT_EQ(run_crema(folder_, {"deploy", "--model=net.prototxt", "--output=d.prototxt"}).status,
            0);
  folder_.write("names", "a\nb\nc\n");
  const Ended ended =
      classify({"--model=d.prototxt", "--labels=names", "--top=1", "pictures/2.png"});
  EXPECT_EQ(ended.out, "pictures/2.png\n  0.5761  2 c\n") << ended.err;
}

TEST_F(ClassifyTest, ResizesAsTheTransformSays) {
  const std::string net = read_file(folder_ / "net.prototxt");
  const std::string mirror = "mirror: true";
  folder_.write("net.prototxt",
                std::string(net).replace(
                    net.find(mirror), mirror.size(),
                    "resize_param { resize_mode: FIT_LARGE_SIZE_AND_PAD height: 2 width: 2 "
                    "pad_value: 255 }"));
  // 0, padding / 128, padding: the second place is the brightest of the three.
  testing::write_picture_file(folder_ / "tall.png", Picture{2, 1, 1, {0, 128}});
  Ended ended = classify({"--model=net.prototxt", "--top=1", "tall.png"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_HAS(ended.out, "  1 one\n");
  ASSERT_EQ(run_crema(folder_, {"deploy", "--model=net.prototxt", "--output=d.prototxt",
                                "--preprocessing=p.json"})
                .status,
            0);
  EXPECT_EQ(classify({"--model=d.prototxt", "--top=1", "tall.png"}).out.substr(0, 20),
            ended.out.substr(0, 20));
  EXPECT_HAS(
      read_file(folder_ / "p.json"),
      "\"resize\": null,\n  \"resize_mode\": \"FIT_LARGE_SIZE_AND_PAD\",\n  \"resize_to\": [2, "
      "2],\n");
}

TEST_F(ClassifyTest, NamesWhatCannotBeRead) {
  folder_.write("pictures/3.png", "no picture");
  Ended ended = classify({"--model=net.prototxt", "--top=1", "pictures"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_HAS(ended.out, "pictures/2.png\n  0.5761  2 two\n");
  EXPECT_HAS(ended.err, "pictures/3.png: ");
  EXPECT_HAS(ended.err, "1 of 4 files could not be read");
  ended = classify({"--model=net.prototxt", "nowhere.png"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_HAS(ended.err, "nowhere.png: there is no such file or folder");
  ended = classify({"--model=net.prototxt"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_HAS(ended.err, "crema classify needs picture files or folders");
}

TEST(Summary, CountsParametersAndMultiplyAdds) {
  const TestFolder folder;
  write_trained(folder);
  const Ended ended = run_crema(folder, {"summary", "--model=net.prototxt"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  const auto row = [&](const std::string& layer) {
    const std::vector<std::string> lines = lines_with(ended.out, layer);
    return lines.empty() ? "" : lines[0];
  };
  EXPECT_HAS(row("conv  "), "2x2x2x2");
  EXPECT_HAS(row("conv  "), " 20  ");  // 2 filters of 3 x 3, 2 biases
  EXPECT_HAS(row("conv  "), " 144");   // 2 pictures, 2 x 2 x 2 outputs, 9 weights
  EXPECT_HAS(row("ip  "), " 27  ");    // 8 x 3 and 3 biases
  EXPECT_HAS(row("ip  "), " 48");      // 2 x 24
  EXPECT_HAS(row("total"), " 74  ");   // 20 + 27 + 27
  EXPECT_HAS(row("total"), " 240");    // 144 + 48 + 48
  EXPECT_HAS(ended.out, "memory for testing");
  EXPECT_EQ(run_crema(folder, {"summary"}).status, 1);
}

/// DeepLab's, with its way to store results.
constexpr const char* kForkData = R"(
  layer { name: 'd' type: 'ImageSegData' top: 'data' top: 'label' top: 'data_dim'
          transform_param { crop_size: 9 mean_value: 104 mean_value: 116 mean_value: 122 }
          image_data_param { source: 'none' batch_size: 2 label_type: PIXEL } }
  layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
          convolution_param { num_output: 2 kernel_size: 3 } }
  layer { name: 'accuracy' type: 'SegAccuracy' bottom: 'conv' bottom: 'label' top: 'accuracy' }
  layer { name: 'mat' type: 'MatWrite' bottom: 'conv' }
  layer { name: 'silence' type: 'Silence' bottom: 'data_dim' }
)";

/// As DIGITS has nets: one file, data layers in the stages train and val only.
TEST(Deploy, MakesAnInputOfWhatNobodyMakes) {
  const TestFolder folder;
  folder.write("net.prototxt", R"(
    layer { name: 'd' type: 'Data' top: 'data' top: 'label' include { stage: 'train' }
            data_param { source: 'none' batch_size: 2 } }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'
            inner_product_param { num_output: 2 } }
    layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label'
            exclude { stage: 'deploy' } }
    layer { name: 'softmax' type: 'Softmax' bottom: 'ip' top: 'softmax'
            include { stage: 'deploy' } })");
  const std::vector<std::string> flags = {"deploy", "--model=net.prototxt", "--stage=deploy"};
  Ended ended = run_crema(folder, flags);
  EXPECT_EQ(ended.status, 1);
  EXPECT_HAS(ended.err,
             "net.prototxt: no layer of the phase and stages makes data; "
             "--input_shape=1,3,224,224 makes an input of it");
  std::vector<std::string> with_shape = flags;
  with_shape.emplace_back("--input_shape=1,3,4,4");
  ended = run_crema(folder, with_shape);
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(canonical(ended.out), canonical(R"(
    layer { name: 'data' type: 'Input' top: 'data'
            input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'
            inner_product_param { num_output: 2 } }
    layer { name: 'softmax' type: 'Softmax' bottom: 'ip' top: 'softmax' })"));
}

TEST(Deploy, TakesTheDataLayerOfAFork) {
  const TestFolder folder;
  folder.write("net.prototxt", kForkData);
  const Ended ended = run_crema(folder, {"deploy", "--model=net.prototxt", "--output=d.prototxt"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_HAS(ended.err,
             "layers of type ImageSegData are not built in (a layer of DeepLab); "
             "pictures of 3 9 9 are assumed");
  EXPECT_EQ(canonical(read_file(folder / "d.prototxt")), canonical(R"(
    layer { name: 'data' type: 'Input' top: 'data'
            input_param { shape { dim: 1 dim: 3 dim: 9 dim: 9 } }
            transform_param { crop_size: 9 mean_value: 104 mean_value: 116 mean_value: 122 } }
    layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
            convolution_param { num_output: 2 kernel_size: 3 } })"));
}

/// With the fields of SSD's own deploy nets.
TEST(Deploy, MultiBoxLossBecomesDetections) {
  NetParameter net;
  parse_text(R"(
    layer { name: 'd' type: 'Input' top: 'loc' top: 'conf' top: 'prior' top: 'truth'
            input_param { shape { dim: [1, 8] } shape { dim: [1, 6] } shape { dim: [1, 2, 8] }
                          shape { dim: [1, 1, 1, 8] } } }
    layer { name: 'l' type: 'MultiBoxLoss' bottom: 'loc' bottom: 'conf' bottom: 'prior'
            bottom: 'truth' top: 'l' multibox_loss_param { num_classes: 3 code_type: CENTER_SIZE } })",
             "f", &net);
  DeployNet made = derive_deploy(net, "f");
  EXPECT_EQ(made.outputs, std::vector<std::string>{"detection_out"});
  made.net.mutable_layer()->DeleteSubrange(0, 1);
  EXPECT_EQ(write_text(made.net), canonical(R"(
    layer { name: 'conf_reshape' type: 'Reshape' bottom: 'conf' top: 'conf_reshape'
            reshape_param { shape { dim: [0, -1, 3] } } }
    layer { name: 'conf_softmax' type: 'Softmax' bottom: 'conf_reshape' top: 'conf_softmax'
            softmax_param { axis: 2 } }
    layer { name: 'conf_flatten' type: 'Flatten' bottom: 'conf_softmax' top: 'conf_flatten' }
    layer { name: 'detection_out' type: 'DetectionOutput' bottom: 'loc' bottom: 'conf_flatten'
            bottom: 'prior' top: 'detection_out'
            detection_output_param { num_classes: 3 share_location: true background_label_id: 0
              nms_param { nms_threshold: 0.45 top_k: 400 } code_type: CENTER_SIZE
              variance_encoded_in_target: false keep_top_k: 200 confidence_threshold: 0.01 } })"));
  net.mutable_layer(1)->mutable_multibox_loss_param()->set_conf_loss_type(
      MultiBoxLossParameter::LOGISTIC);
  EXPECT_EQ(derive_deploy(net, "f").net.layer(1).type(), "Sigmoid");
}

/// Readers disagree about what is meant where it is not written.
TEST(Deploy, SaysThatPriorBoxesAreNotClipped) {
  const auto clip = [](const std::string& field) {
    NetParameter net;
    parse_text(
        "layer { name: 'd' type: 'Input' top: 'd' input_param { shape { dim: [1, 1, 9, 9] } } }"
        "layer { name: 'p' type: 'PriorBox' bottom: 'd' bottom: 'd' top: 'p' "
        "prior_box_param { min_size: 2 " +
            field + " } }",
        "f", &net);
    const PriorBoxParameter& param = derive_deploy(net, "f").net.layer(1).prior_box_param();
    return std::pair(param.has_clip(), param.clip());
  };
  EXPECT_EQ(clip(""), std::pair(true, false));
  EXPECT_EQ(clip("clip: true"), std::pair(true, true));
}

TEST(Summary, TakesTheBatchOfAnnotatedData) {
  const TestFolder folder;
  folder.write("net.prototxt", R"(
    layer { name: 'd' type: 'AnnotatedData' top: 'data' top: 'label'
            data_param { source: 'none' batch_size: 5 }
            transform_param { resize_param { resize_mode: WARP height: 8 width: 6 } } }
    layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
            convolution_param { num_output: 2 kernel_size: 3 } })");
  const Ended ended = run_crema(folder, {"summary", "--model=net.prototxt"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_HAS(ended.out, "5x3x8x6 1x1x5x8");
  EXPECT_HAS(ended.out, "5x2x6x4");
}

TEST(Summary, NeedsNoRecords) {
  const TestFolder folder;
  folder.write("net.prototxt", kTrained);
  const Ended ended = run_crema(folder, {"summary", "--model=net.prototxt"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_HAS(ended.err, "pictures of 3 4 4 are assumed");
  EXPECT_HAS(ended.out, "2x3x4x4 2");
}

}  // namespace
}  // namespace crema
