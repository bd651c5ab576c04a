// Files and blobs beyond 2 GB, without 2 GB of disk or memory.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "io/blob.h"
#include "io/scratch.h"
#include "io/weights.h"
#include "io/wire.h"

namespace crema {
namespace {

TEST(Large, SizesOfBlobsAreExact) {
  // shape: 2 bytes in front, packed dims 2 + 3; data: tag, length of 5 bytes, values.
  const uint64_t values = 536870000;
  EXPECT_EQ(blob_size(Shape{int64_t{536870000}}, values, 0), 2 + 7 + 6 + 4 * values);
  EXPECT_EQ(blob_size(HostBlob{{3}, {1, 2, 3}, {4, 5, 6}}, true), 2 + 3 + 2 + 12 + 2 + 12);
  EXPECT_EQ(blob_size(HostBlob{{3}, {1, 2, 3}, {4, 5, 6}}, false), 2 + 3 + 2 + 12);
}

TEST(Large, BlobsBeyondTheFormatAreRefused) {
  const std::string blob =
      error_of([] { blob_size(Shape{int64_t{1} << 29}, uint64_t{1} << 29, 0); });
  EXPECT_NE(blob.find("a blob of shape 536870912 exceeds the 2 GB"), std::string::npos) << blob;
  const uint64_t half = uint64_t{1} << 28;
  EXPECT_GT(blob_size(Shape{int64_t{1} << 28}, half, 0), half);
  EXPECT_NE(error_of([&] { blob_size(Shape{int64_t{1} << 28}, half, half); }), "no error");
}

/// A sparse file: a field that nobody reads, 5 GB long, with the layer behind it.
TEST(Large, ALayerBehindFiveGigabytesIsRead) {
  const TestFolder dir;
  const std::string path = dir / "large.caffemodel";
  NetParameter net;
  net.set_name("n");
  net.add_layer()->set_name("late");
  write_weights_binary(
      path, net,
      [](int) {
        return std::vector<HostBlob>{{{2}, {7, 8}, {}}};
      },
      false);
  const std::string layer = read_file(path).substr(3);
  const uint64_t gap = uint64_t{5} << 30;
  std::string head("\x0a\x01n", 3);  // the name, so that the file tells what it is
  head += "\xfa\x3e";                // field 1007, bytes
  for (uint64_t left = gap; left; left >>= 7) {
    head += static_cast<char>((left & 127) | (left > 127 ? 128 : 0));
  }
  {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << head;
    file.seekp(static_cast<std::streamoff>(head.size() + gap));
    file << layer;
    ASSERT_TRUE(file.good());
  }
  ASSERT_GT(std::filesystem::file_size(path), gap);
  const WeightsFile weights = read_weights(path);
  ASSERT_EQ(weights.layers.size(), 1u);
  EXPECT_EQ(weights.layers[0].name, "late");
  EXPECT_EQ(weights.layers[0].blobs.at(0).data, (std::vector<float>{7, 8}));
}

}  // namespace
}  // namespace crema
