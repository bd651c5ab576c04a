// Mean files.
#include "io/mean.h"

#include <gtest/gtest.h>

#include "io/scratch.h"

namespace crema {
namespace {

std::string refusal(const std::string& path) {
  return error_of([&] { read_mean(path); });
}

TEST(Mean, RoundTripWithFourLegacySizes) {
  const TestFolder dir;
  write_mean(dir / "m", {{3, 1, 2}, {1, 2, 3, 4, 5, 6}, {}});
  const HostBlob mean = read_mean(dir / "m");
  EXPECT_EQ(mean.shape, (Shape{1, 3, 1, 2}));
  EXPECT_EQ(mean.data, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  BlobProto proto;
  ASSERT_TRUE(proto.ParseFromString(read_file(dir / "m")));
  EXPECT_TRUE(proto.has_num() && !proto.has_shape());
}

TEST(Mean, WithAShapeInsteadOfSizes) {
  const TestFolder dir;
  write_file(dir / "m", to_proto({{2, 1, 1}, {8, 9}, {}}).SerializeAsString());
  EXPECT_EQ(read_mean(dir / "m").data, (std::vector<float>{8, 9}));
  const HostBlob large{{3, 100, 100}, std::vector<float>(30000, 0.5f), {}};
  write_file(dir / "m", to_proto(large).SerializeAsString());
  EXPECT_EQ(read_mean(dir / "m").data, large.data);
}

TEST(Mean, FilesThatAreNone) {
  const TestFolder dir;
  const std::string m = dir / "m", needed = ", a mean file (.binaryproto) is needed";
  EXPECT_EQ(refusal(m), m + ": No such file or directory");
  write_file(m, "");
  EXPECT_EQ(refusal(m), m + ": is empty" + needed);
  write_file(m, "hello");
  EXPECT_EQ(refusal(m), m + ": is a text file" + needed);
  const std::string weights = test_data("sgd.caffemodel");
  EXPECT_EQ(refusal(weights), weights + ": is a weights file (.caffemodel)" + needed);
  write_mean(m, {{1, 2}, {1, 2}, {}});
  write_file(m, read_file(m).substr(0, 14));
  EXPECT_EQ(refusal(m), m + ": is truncated or damaged" + needed);
}

TEST(Mean, WithoutValues) {
  const TestFolder dir;
  BlobProto proto;  // a fork's five sizes leave these four and no data that we know of
  proto.set_num(1);
  proto.set_channels(3);
  proto.set_height(16);
  proto.set_width(128);
  write_file(dir / "m", proto.SerializeAsString());
  EXPECT_EQ(refusal(dir / "m"), dir / "m" + ": has the shape 1 3 16 128 (6144 values) but holds 0");
  proto.set_width(0);
  write_file(dir / "m", proto.SerializeAsString());
  EXPECT_EQ(refusal(dir / "m"), dir / "m" + ": holds no values");
}

}  // namespace
}  // namespace crema
