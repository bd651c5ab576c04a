// crema convert: weights round all formats, means, and what cannot become what.
#include "base/file.h"
#include "io/mean.h"
#include "io/npz.h"
#include "tools/convert_testing.h"
#include "tools/crema_nets.h"
#include "tools/weights_testing.h"

namespace crema {
namespace {

HostBlob blob(const Shape& shape, std::vector<float> data) {
  return {.shape = shape, .data = std::move(data), .diff = {}};
}

Ended convert(const TestFolder& folder, const std::string& in, const std::string& out) {
  return run_crema(folder, {"convert", in, out});
}

void expect_weights(const std::string& path) {
  const WeightsFile weights = read_weights(path);
  ASSERT_EQ(weights.layers.size(), 2u) << path;
  EXPECT_EQ(weights.layers[0].name, "a/1x1");
  ASSERT_EQ(weights.layers[0].blobs.size(), 2u);
  EXPECT_EQ(weights.layers[0].blobs[0].shape, Shape({2, 1}));
  EXPECT_EQ(weights.layers[0].blobs[0].data, std::vector<float>({1.5F, -2}));
  EXPECT_EQ(weights.layers[0].blobs[1].data, std::vector<float>({3}));
  EXPECT_EQ(weights.layers[1].name, "b");
  EXPECT_EQ(weights.layers[1].blobs[0].data, std::vector<float>({4}));
}

TEST(ConvertWeights, RoundAllFormats) {
  const TestFolder folder;
  testing::write_weights(
      folder / "w.caffemodel",
      {{"a/1x1", {blob({2, 1}, {1.5F, -2}), blob({1}, {3})}}, {"b", {blob({1}, {4})}}});
  const std::vector<std::string> chain = {
      "w.caffemodel", "w.caffemodel.h5", "w.npz", "v.caffemodel", "v.npz", "v.h5", "u.caffemodel"};
  for (size_t i = 1; i < chain.size(); ++i) {
    const Ended ended = convert(folder, chain[i - 1], chain[i]);
    EXPECT_EQ(ended.status, 0) << chain[i] << ended.err;
    if (chain[i].find(".npz") == std::string::npos) expect_weights(folder / chain[i]);
  }
  EXPECT_EQ(read_npz(folder / "v.npz")[1].first, "a/1x1/1");
}

TEST(ConvertWeights, OldNetsBecomeNew) {
  const TestFolder folder;
  NetParameter net;
  parse_text(
      "layers { name: 'c' type: CONVOLUTION bottom: 'x' top: 'c' "
      "blobs { num: 1 channels: 1 height: 1 width: 2 data: 7 data: 8 } }",
      "f", &net);
  folder.write("old.caffemodel", net.SerializeAsString());
  EXPECT_EQ(convert(folder, "old.caffemodel", "new.caffemodel").status, 0);
  NetParameter read;
  ASSERT_TRUE(read.ParseFromString(read_file(folder / "new.caffemodel")));
  ASSERT_EQ(read.layer_size(), 1);
  EXPECT_EQ(read.layer(0).type(), "Convolution");
  EXPECT_EQ(read.layer(0).bottom(0), "x");
  EXPECT_EQ(read.layer(0).blobs(0).data(1), 8);
}

TEST(ConvertWeights, Means) {
  const TestFolder folder;
  write_mean(folder / "m.binaryproto", blob({1, 2, 1, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(convert(folder, "m.binaryproto", "m.npy").status, 0);
  const HostBlob array = read_npy(read_file(folder / "m.npy"));
  EXPECT_EQ(array.shape, Shape({2, 1, 2}));
  EXPECT_EQ(convert(folder, "m.npy", "n.binaryproto").status, 0);
  EXPECT_EQ(read_file(folder / "n.binaryproto"), read_file(folder / "m.binaryproto"));
}

TEST(ConvertWeights, RefusesWhatDoesNotFit) {
  const TestFolder folder;
  testing::write_weights(folder / "w.caffemodel", {{"a", {blob({1}, {3})}}});
  write_npz(folder / "names.npz", {{"weights", blob({1}, {3})}});
  write_npz(folder / "gap.npz", {{"a/1", blob({1}, {3})}});
  write_mean(folder / "m.binaryproto", blob({1, 1, 1, 1}, {1}));
  folder.write("empty", "");
  folder.write("text", "words");
  folder.write("cut.caffemodel", read_file(folder / "w.caffemodel").substr(0, 12));
  struct Row {
    const char *in, *out, *error;
  };
  for (const Row& row : std::vector<Row>{
           {"w.caffemodel", "w.txt", "w.txt: weights become .caffemodel"},
           {"w.caffemodel", "w.npy", "is a file of weights, which cannot become w.npy"},
           {"empty", "w.npy", "empty: is empty, a mean (.binaryproto or .npy) is needed"},
           {"text", "w.binaryproto", "text: is a text file, a mean (.binaryproto or .npy)"},
           {"names.npz", "w.npy", "is a file of weights, which cannot become w.npy"},
           {"m.binaryproto", "w.h5", "is one array, as means are, which cannot become w.h5"},
           {"none.caffemodel", "x.npz", "none.caffemodel: No such file"},
           {"cut.caffemodel", "x.npz", "cut.caffemodel: is truncated"},
           {"names.npz", "x.h5", "array \"weights\": weights are named LAYER/INDEX"},
           {"gap.npz", "x.h5", "layer \"a\": array 0 is missing before 1"}}) {
    const Ended ended = convert(folder, row.in, row.out);
    EXPECT_EQ(ended.status, 1) << row.in;
    EXPECT_HAS(ended.err, row.error);
    EXPECT_FALSE(folder.has(row.out));
  }
  EXPECT_EQ(run_crema(folder, {"convert", "w.caffemodel"}).status, 1);
}

}  // namespace
}  // namespace crema
