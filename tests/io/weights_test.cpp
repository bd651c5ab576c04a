// Weights files: those of others are read, those of ours are complete nets, and what is no weights
// file is refused by name.
#include "io/weights.h"

#include <gtest/gtest.h>

#include <map>

#include "io/hdf5.h"
#include "io/scratch.h"

namespace crema {
namespace {

std::string refusal(const std::string& path) {
  return error_of([&] { read_weights(path); });
}

// A net with a layer of two blobs, one without, and a name that HDF5 splits at its slash.
NetParameter small_net() {
  NetParameter net;
  net.set_name("small");
  for (const char* name : {"data", "inception/3x3", "ip"}) {
    LayerParameter* layer = net.add_layer();
    layer->set_name(name);
    layer->set_type("InnerProduct");
    layer->add_bottom("x");
    layer->add_top("y");
    layer->set_source_location("f:1");
    layer->mutable_inner_product_param()->set_num_output(2);
  }
  return net;
}

std::vector<HostBlob> small_blobs(int layer) {
  if (layer == 0) return {};
  const float v = static_cast<float>(layer);
  return {{{2, 2}, {v, 2, 3, 4}, {5, 6, 7, 8}}, {{2}, {-v, -2}, {}}};
}

void expect_small(const WeightsFile& file, bool with_diff) {
  std::map<std::string, LayerWeights> layers;
  for (const LayerWeights& layer : file.layers) layers[layer.name] = layer;
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_TRUE(layers["data"].blobs.empty());
  for (int i : {1, 2}) {
    const LayerWeights& layer = layers[i == 1 ? "inception/3x3" : "ip"];
    ASSERT_EQ(layer.blobs.size(), 2u);
    EXPECT_EQ(layer.blobs[0].shape, (Shape{2, 2}));
    EXPECT_EQ(layer.blobs[0].data, small_blobs(i)[0].data);
    EXPECT_EQ(layer.blobs[0].diff, with_diff ? small_blobs(i)[0].diff : std::vector<float>());
    EXPECT_EQ(layer.blobs[1].data, small_blobs(i)[1].data);
  }
}

TEST(Weights, OfTheReference) {
  const WeightsFile file = read_weights(test_data("sgd.caffemodel"));
  EXPECT_EQ(file.net_name, "tiny");
  ASSERT_EQ(file.layers.size(), 5u);
  EXPECT_EQ(file.layers[1].name, "conv");
  EXPECT_EQ(file.layers[1].type, "Convolution");
  EXPECT_EQ(file.layers[1].bottoms, (std::vector<std::string>{"data"}));
  EXPECT_EQ(file.layers[0].tops, (std::vector<std::string>{"data", "label"}));
  EXPECT_EQ(file.layers[1].blobs[0].shape, (Shape{3, 1, 3, 3}));
  EXPECT_EQ(file.layers[3].blobs[0].shape, (Shape{4, 48}));
  EXPECT_EQ(file.layers[3].blobs[1].data.size(), 4u);
  EXPECT_NE(file.layers[3].blobs[1].data[0], 0);
}

TEST(Weights, OfTheReferenceInHdf5) {
  const WeightsFile file = read_weights(test_data("adam.caffemodel.h5"));
  ASSERT_EQ(file.layers.size(), 5u);
  const auto& conv = file.layers[0].name == "conv" ? file.layers[0] : file.layers[1];
  EXPECT_EQ(conv.name, "conv");
  EXPECT_EQ(conv.blobs[0].shape, (Shape{3, 1, 3, 3}));
  EXPECT_FLOAT_EQ(conv.blobs[0].data[0], 0.39485291f);
}

TEST(Weights, BinaryRoundTrip) {
  const TestFolder dir;
  for (const bool with_diff : {false, true}) {
    write_weights_binary(dir / "w", small_net(), small_blobs, with_diff);
    const WeightsFile file = read_weights(dir / "w");
    expect_small(file, with_diff);
    EXPECT_EQ(file.net_name, "small");
    EXPECT_EQ(file.layers[2].type, "InnerProduct");
  }
  EXPECT_EQ(dir.files().size(), 1u);
}

TEST(Weights, BinaryIsANetParameterWithoutOurPlaces) {
  const TestFolder dir;
  write_weights_binary(dir / "w", small_net(), small_blobs);
  NetParameter net;
  ASSERT_TRUE(net.ParseFromString(read_file(dir / "w")));
  NetParameter expected = small_net();
  for (int i = 0; i < 3; ++i) {
    expected.mutable_layer(i)->clear_source_location();
    for (const HostBlob& blob : small_blobs(i)) {
      *expected.mutable_layer(i)->add_blobs() = to_proto(blob);
    }
  }
  EXPECT_EQ(net.DebugString(), expected.DebugString());
}

TEST(Weights, Hdf5RoundTrip) {
  const TestFolder dir;
  for (const bool with_diff : {false, true}) {
    write_weights_hdf5(dir / "w.h5", small_net(), small_blobs, with_diff);
    expect_small(read_weights(dir / "w.h5"), with_diff);
  }
  EXPECT_EQ(Hdf5File::open(dir / "w.h5").shape("data/inception/3x3/0"), (Shape{2, 2}));
}

TEST(Weights, Hdf5KeepsTheIndexOfABlobWhoseSharedNeighbourIsElsewhere) {
  const TestFolder dir;
  NetParameter net;
  net.add_layer()->set_name("ip");
  write_weights_hdf5(dir / "w.h5", net, [](int) {
    return std::vector<HostBlob>{{{1}, {}, {}}, {{1}, {5}, {}}};
  });
  const WeightsFile file = read_weights(dir / "w.h5");
  ASSERT_EQ(file.layers[0].blobs.size(), 2u);
  EXPECT_TRUE(file.layers[0].blobs[0].is_missing());
  EXPECT_EQ(file.layers[0].blobs[1].data, (std::vector<float>{5}));
}

TEST(Weights, Hdf5NeedsNamesOfItsOwn) {
  const TestFolder dir;
  auto with_name = [&](const char* name) {
    NetParameter net;
    net.add_layer()->set_name(name);
    net.add_layer()->set_name(name);
    return error_of([&] {
      write_weights_hdf5(dir / "w", net, [](int) { return std::vector<HostBlob>{{{1}, {1}, {}}}; });
    });
  };
  EXPECT_EQ(with_name("fc"), "cannot write " + dir / "w" +
                                 ": two layers have the name \"fc\": HDF5 files can hold one");
  EXPECT_EQ(with_name(""), "cannot write " + dir / "w" +
                               ": a layer without a name has parameters: HDF5 files need one");
  EXPECT_EQ(dir.files().size(), 0u);
}

TEST(Weights, OldLayersAndLegacySizes) {
  const TestFolder dir;
  NetParameter net;
  V1LayerParameter* layer = net.add_layers();
  layer->set_name("fc");
  layer->set_type(V1LayerParameter::INNER_PRODUCT);
  layer->add_bottom("a");
  layer->add_top("b");
  layer->add_blobs_lr(1);
  BlobProto* blob = layer->add_blobs();
  blob->set_num(1);
  blob->set_channels(1);
  blob->set_height(1);
  blob->set_width(2);
  blob->add_data(1);
  blob->add_data(2);
  V0LayerParameter* oldest = net.add_layers()->mutable_layer();
  oldest->set_name("conv0");
  oldest->set_type("conv");
  *oldest->add_blobs() = *blob;
  write_file(dir / "w", net.SerializeAsString());
  const WeightsFile file = read_weights(dir / "w");
  EXPECT_EQ(file.layers[0].name, "fc");
  EXPECT_EQ(file.layers[0].type, "InnerProduct");
  EXPECT_EQ(file.layers[0].bottoms, (std::vector<std::string>{"a"}));
  EXPECT_EQ(file.layers[0].tops, (std::vector<std::string>{"b"}));
  EXPECT_EQ(file.layers[0].blobs[0].shape, (Shape{1, 1, 1, 2}));
  EXPECT_EQ(file.layers[1].name, "conv0");
  EXPECT_EQ(file.layers[1].blobs[0].data, (std::vector<float>{1, 2}));
}

// Appends bytes as field number to a layer (its own length is written by protobuf).
std::string layer_with_fields(const std::string& extra) {
  LayerParameter layer;
  layer.set_name("fc");
  *layer.add_blobs() = to_proto({{1}, {3}, {}});
  std::string content = layer.SerializeAsString() + extra;
  NetParameter net;
  net.set_name("n");
  std::string file = net.SerializeAsString();
  file += "\xa2\x06";  // field 100, bytes
  file += static_cast<char>(content.size());
  return file + content;
}

TEST(Weights, NumbersThatAForkReusedAreNeverReadAsOurs) {
  const TestFolder dir;
  // 145 as a varint (NVCaffe's forward_type; here parameter_param), 106 as a varint, 8 as a number.
  write_file(dir / "w", layer_with_fields("\x88\x09\x01\xd0\x06\x05\x45zzzz"));
  NetParameter net;
  const WeightsFile file = read_weights(dir / "w");
  EXPECT_EQ(file.layers[0].blobs[0].data, (std::vector<float>{3}));
  // 106 as bytes that are no ConvolutionParameter: protobuf would refuse the file.
  write_file(dir / "w", layer_with_fields("\xd2\x06\x02\xff\xff"));
  EXPECT_FALSE(net.ParseFromString(read_file(dir / "w")));
  EXPECT_EQ(read_weights(dir / "w").layers[0].name, "fc");
}

TEST(Weights, InputFieldsAreNoLayers) {
  const TestFolder dir;
  NetParameter net;
  net.add_input("data");
  for (int dim : {1, 3, 4, 4}) net.add_input_dim(dim);
  net.add_layer()->set_name("fc");
  write_file(dir / "w", net.SerializeAsString());
  const WeightsFile file = read_weights(dir / "w");
  ASSERT_EQ(file.layers.size(), 1u);
  EXPECT_EQ(file.layers[0].name, "fc");
}

TEST(Weights, ValuesThatDoNotFillTheShapeAreRefused) {
  const TestFolder dir;
  NetParameter net;
  LayerParameter* layer = net.add_layer();
  layer->set_name("fc");
  *layer->add_blobs() = to_proto({{1}, {3}, {}});
  layer->add_blobs()->mutable_shape()->add_dim(270);
  net.set_name("n");
  write_file(dir / "w", net.SerializeAsString());
  EXPECT_EQ(refusal(dir / "w"),
            dir / "w" + ": layer \"fc\": blob 1 has the shape 270 (270 values) but holds 0");
}

TEST(Weights, FilesOfAnotherKind) {
  const TestFolder dir;
  const std::string needed = ", a weights file (.caffemodel) is needed";
  const std::string w = dir / "w";
  EXPECT_EQ(refusal(w), w + ": No such file or directory");
  EXPECT_EQ(refusal(dir / "."), dir / "." + ": is a directory, a file is needed");
  write_file(w, "");
  EXPECT_EQ(refusal(w), w + ": is empty" + needed);
  write_file(w, "name: \"x\"\nlayer { name: \"a\" }\n");
  EXPECT_EQ(refusal(w), w + ": is a text file (prototxt)" + needed);
  write_file(w, "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 5\n");
  EXPECT_EQ(refusal(w),
            w + ": is a git-lfs pointer (fetch the file itself: git lfs pull)" + needed);
  write_file(w, "<!DOCTYPE html><html>404</html>");
  EXPECT_EQ(refusal(w), w + ": is a web page (a failed download?)" + needed);
  write_file(w, "hello");
  EXPECT_EQ(refusal(w), w + ": is a text file" + needed);
  write_file(w, std::string(64, '\0'));
  EXPECT_EQ(refusal(w), w + ": is binary data of no known kind" + needed);
  const std::string state = test_data("sgd.solverstate"), h5 = test_data("adam.solverstate.h5");
  EXPECT_EQ(refusal(state), state + ": is a solver state (.solverstate)" + needed);
  EXPECT_EQ(refusal(h5), h5 + ": is a solver state, a weights file (.caffemodel.h5) is needed");
  write_file(w, to_proto({{2}, {1, 2}, {}}).SerializeAsString());
  EXPECT_EQ(refusal(w), w + ": is a single blob (a mean file?)" + needed);
  NetParameter net;
  net.set_name("no layers");
  net.set_force_backward(true);
  write_file(w, net.SerializeAsString());
  EXPECT_EQ(refusal(w), w + ": holds no layers" + needed);
}

/// As files that were copied in blocks; Caffe's reader stops at a field of number 0 as well.
TEST(Weights, ZerosAtTheEndAreNoFields) {
  const TestFolder dir;
  write_weights_binary(dir / "w", small_net(), small_blobs, false);
  write_file(dir / "w", read_file(dir / "w") + std::string(100, '\0'));
  expect_small(read_weights(dir / "w"), false);
  write_file(dir / "w", read_file(dir / "w") + "\1");
  EXPECT_NE(refusal(dir / "w").find("is damaged: no field at byte "), std::string::npos);
}

TEST(Weights, ANetWithoutANameMayBeginWithItsState) {
  const TestFolder dir;
  NetParameter net = small_net();
  net.clear_name();
  net.mutable_state()->set_phase(TRAIN);
  write_weights_binary(dir / "w", net, small_blobs, false);
  expect_small(read_weights(dir / "w"), false);
}

TEST(Weights, TruncatedAndDamagedFiles) {
  const TestFolder dir;
  const std::string whole = read_file(test_data("sgd.caffemodel"));
  for (size_t size = 1; size < whole.size(); size += 13) {
    write_file(dir / "w", whole.substr(0, size));
    try {
      read_weights(dir / "w");  // a cut between two layers leaves a smaller valid file
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(dir / "w"), std::string::npos) << error.what();
    }
  }
  write_file(dir / "w", whole.substr(0, whole.size() - 1));
  EXPECT_EQ(refusal(dir / "w"), dir / "w" + ": is truncated: 1 bytes are missing at its end");
  const std::string h5 = read_file(test_data("adam.caffemodel.h5"));
  write_file(dir / "w", h5.substr(0, h5.size() / 2));
  EXPECT_EQ(refusal(dir / "w").rfind(dir / "w" + ": cannot be read as HDF5: truncated file", 0), 0u)
      << refusal(dir / "w");
}

TEST(Weights, AFullDiskLeavesTheOldFile) {
  const TestFolder dir;
  auto large = [](int layer) {
    if (layer == 0) return std::vector<HostBlob>();
    return std::vector<HostBlob>{{{1 << 18}, std::vector<float>(1 << 18, 1.f), {}}};
  };
  write_weights_binary(dir / "w", small_net(), small_blobs);
  write_weights_hdf5(dir / "w.h5", small_net(), small_blobs);
  std::string binary, hdf5;
  {
    const FullDisk full(100000);
    binary = error_of([&] { write_weights_binary(dir / "w", small_net(), large); });
    hdf5 = error_of([&] { write_weights_hdf5(dir / "w.h5", small_net(), large); });
  }
  EXPECT_EQ(binary.rfind("cannot write " + dir / "w" + ": ", 0), 0u) << binary;
  EXPECT_NE(binary.find("File too large"), std::string::npos) << binary;
  EXPECT_EQ(hdf5.rfind("cannot write " + dir / "w.h5" + ": ", 0), 0u) << hdf5;
  EXPECT_NE(hdf5.find("File too large"), std::string::npos) << hdf5;
  expect_small(read_weights(dir / "w"), false);
  expect_small(read_weights(dir / "w.h5"), false);
  EXPECT_EQ(dir.files().size(), 2u);
}

TEST(Weights, AFolderThatIsNotThere) {
  const TestFolder dir;
  EXPECT_EQ(error_of([&] { write_weights_binary(dir / "no/w", small_net(), small_blobs); }),
            "cannot write " + dir / "no/w" + ": No such file or directory");
}

}  // namespace
}  // namespace crema
