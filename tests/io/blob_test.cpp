// BlobProto in all its dialects, and blobs that lie about their size.
#include "io/blob.h"

#include <gtest/gtest.h>

#include <cmath>

#include "io/scratch.h"

namespace crema {
namespace {

BlobProto with_shape(std::initializer_list<int64_t> dims) {
  BlobProto proto;
  for (int64_t dim : dims) proto.mutable_shape()->add_dim(dim);
  return proto;
}

std::string refusal(const BlobProto& proto) {
  return error_of([&] { from_proto(proto); });
}

TEST(Blob, FloatAndDoubleValues) {
  BlobProto proto = with_shape({2, 2});
  for (float v : {1.f, 2.f, 3.f, 4.f}) proto.add_data(v), proto.add_diff(-v);
  EXPECT_EQ(from_proto(proto).data, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(from_proto(proto).diff, (std::vector<float>{-1, -2, -3, -4}));
  EXPECT_EQ(from_proto(proto).shape, (Shape{2, 2}));
  BlobProto doubles = with_shape({1});
  doubles.add_double_data(0.1);
  EXPECT_EQ(from_proto(doubles).data, (std::vector<float>{0.1f}));
}

TEST(Blob, LegacySizesMakeFourAxes) {
  BlobProto proto;
  proto.set_num(1);
  proto.set_channels(1);
  proto.set_height(1);
  proto.set_width(2);
  proto.add_data(5);
  proto.add_data(6);
  EXPECT_EQ(from_proto(proto).shape, (Shape{1, 1, 1, 2}));
}

TEST(Blob, NoAxesHoldOneValue) {
  BlobProto proto;
  EXPECT_EQ(refusal(proto), "has the shape scalar (1 values) but holds 0");
  proto.add_data(7);
  EXPECT_EQ(from_proto(proto).data, (std::vector<float>{7}));
}

TEST(Blob, RawValuesOfNvcaffe) {
  BlobProto proto = with_shape({6});
  proto.set_raw_data_type(FLOAT16);
  const uint16_t halves[] = {0x3c00, 0xc000, 0x0001, 0x7c00, 0x3555, 0x8000};
  proto.set_raw_data(std::string(reinterpret_cast<const char*>(halves), sizeof halves));
  const std::vector<float> values = from_proto(proto).data;
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], -2);
  EXPECT_EQ(values[2], 0x1p-24f);
  EXPECT_EQ(values[3], INFINITY);
  EXPECT_FLOAT_EQ(values[4], 0.33325195f);
  EXPECT_TRUE(values[5] == 0 && std::signbit(values[5]));
  proto = with_shape({1});
  const double one = 1.5;
  proto.set_raw_data_type(DOUBLE);
  proto.set_raw_data(std::string(reinterpret_cast<const char*>(&one), sizeof one));
  EXPECT_EQ(from_proto(proto).data, (std::vector<float>{1.5f}));
  proto.set_raw_data("abc");
  EXPECT_EQ(refusal(proto), "holds 3 bytes of values, no multiple of 8");
  proto.set_raw_data_type(INT);
  EXPECT_EQ(refusal(proto), "holds values of type INT, a floating-point type is needed");
}

TEST(Blob, ValuesMustFillTheShape) {
  BlobProto proto = with_shape({3, 5});
  proto.add_data(1);
  EXPECT_EQ(refusal(proto), "has the shape 3 5 (15 values) but holds 1");
  EXPECT_EQ(refusal(with_shape({-1, 2})), "has a negative size in its shape -1 2");
  EXPECT_EQ(refusal(with_shape({65536, 65536})),
            "has the shape 65536 65536, more than 2147483647 values");
  EXPECT_EQ(refusal(with_shape({int64_t{1} << 62, 8})),
            "has the shape 4611686018427387904 8, more than 2147483647 values");
  proto = with_shape({1});
  proto.add_data(1);
  proto.add_diff(1);
  proto.add_diff(1);
  EXPECT_EQ(refusal(proto), "has the shape 1 (1 values) but holds 2 gradient values");
}

TEST(Blob, RoundTrip) {
  const HostBlob blob{{2, 1}, {1, 2}, {3, 4}};
  EXPECT_EQ(to_proto(blob).diff_size(), 0);
  const HostBlob back = from_proto(to_proto(blob, true));
  EXPECT_EQ(back.shape, blob.shape);
  EXPECT_EQ(back.data, blob.data);
  EXPECT_EQ(back.diff, blob.diff);
}

}  // namespace
}  // namespace crema
