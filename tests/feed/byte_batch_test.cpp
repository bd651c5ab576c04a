// Pictures handed over as bytes: with the functor that finishes them they are next()'s, bit for
// bit.
#include "feed/byte_batch.h"

#include "feed/lmdb_writer.h"
#include "feed_testing.h"
#include "io/mean.h"
#include "ops/ops.h"

namespace crema::testing {
namespace {

/// What a device would do, on the CPU.
std::vector<float> made_of(const ByteFormat& format, const ByteBatch& batch, int64_t records,
                           bool is_nhwc) {
  const int64_t c = format.record[0], h = format.record[1], w = format.record[2];
  std::vector<float> out(static_cast<size_t>(records * c * h * w), -12345.f);
  PicturesFromBytes kernel{.bytes = batch.pixels,
                           .records = batch.records,
                           .mean = format.mean.data(),
                           .y = out.data(),
                           .scale = format.scale,
                           .count = Divider(c * h * w),
                           .channels = Divider(c),
                           .height = Divider(h),
                           .width = Divider(w),
                           .from = {h * w, w, 1},
                           .of_mean = {1, 0, 0},
                           .is_nhwc = is_nhwc};
  if (format.is_interleaved) kernel.from = {1, w * c, c};
  if (format.mean_width > 0) {
    kernel.of_mean = {format.mean_height * format.mean_width, format.mean_width, 1};
  }
  run(*make_ops({}), kernel, records * c * h * w);
  return out;
}

std::vector<float> to_nhwc(const std::vector<float>& x, const Shape& shape) {
  std::vector<float> out(x.size());
  size_t from = 0;
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t c = 0; c < shape[1]; ++c) {
      for (int64_t p = 0; p < shape[2] * shape[3]; ++p) {
        const int64_t at = (n * shape[2] * shape[3] + p) * shape[1] + c;
        out[static_cast<size_t>(at)] = x[from++];
      }
    }
  }
  return out;
}

Allocate from_host() {
  return [](size_t bytes) { return make_ops({})->allocate(bytes, Memory::pinned_host); };
}

std::unique_ptr<Feed> feed_of(const LayerParameter& layer) {
  return make_feed(layer, {.phase = TRAIN, .seed = 5, .layer_name = "data"});
}

/// Five batches of both ways, with a seek between.
void expect_equal(const LayerParameter& layer) {
  const std::unique_ptr<Feed> plain = feed_of(layer), bytes = feed_of(layer);
  const std::optional<ByteFormat> format = bytes->byte_format();
  ASSERT_TRUE(format);
  bytes->hand_over_bytes(from_host());
  const Shape shape = plain->shapes()[0];
  for (int i = 0; i < 5; ++i) {
    if (i == 3) {
      for (Feed* feed : {plain.get(), bytes.get()}) feed->seek(4);
    }
    const std::vector<std::vector<float>> wanted = next_batch(*plain);
    const std::optional<ByteBatch> early = bytes->peek_bytes();
    const ByteBatch batch = bytes->next_bytes();
    EXPECT_TRUE(!early || early->pixels == batch.pixels);
    ASSERT_NE(batch.pixels, nullptr);
    EXPECT_EQ(made_of(*format, batch, shape[0], false), wanted[0]) << "batch " << i;
    EXPECT_EQ(made_of(*format, batch, shape[0], true), to_nhwc(wanted[0], shape)) << "batch " << i;
    EXPECT_EQ(std::vector<float>(batch.labels, batch.labels + shape[0]), wanted[1]);
    EXPECT_EQ(bytes->keys(), plain->keys());
    EXPECT_EQ(bytes->position(), plain->position());
  }
}

class ByteBatches : public ::testing::TestWithParam<const char*> {
 protected:
  /// 22 pictures of 3 x 9 x 7: raw, or encoded without loss.
  void write(bool is_encoded) {
    LmdbWriter writer(folder_ / "db");
    for (int i = 0; i < 22; ++i) {
      const std::string raw = ramp_datum(3, 9, 7, i % 5, 11 * i);
      const std::string file = encode(ramp_picture(9, 7, 3, 11 * i), ".png");
      writer.put(record_key(i), is_encoded ? write_datum({3, 9, 7, i % 5, true}, file) : raw);
    }
    writer.finish();
    HostBlob mean{.shape = {1, 3, 9, 7}, .data = {}, .diff = {}};
    for (int i = 0; i < 3 * 9 * 7; ++i) mean.data.push_back(0.3f * static_cast<float>(i));
    write_mean(folder_ / "mean.binaryproto", mean);
  }
  std::string transform() const {
    std::string text = GetParam();
    const size_t at = text.find("MEAN");
    if (at != std::string::npos) text.replace(at, 4, folder_ / "mean.binaryproto");
    return text;
  }
  TestFolder folder_;
};

TEST_P(ByteBatches, OfRawPicturesAreThePlainOnes) {
  write(false);
  expect_equal(data_layer(folder_ / "db", 4, "", transform()));
}

TEST_P(ByteBatches, OfEncodedPicturesAreThePlainOnes) {
  write(true);
  expect_equal(data_layer(folder_ / "db", 4, "shuffle: true prefetch: 1", transform()));
}

INSTANTIATE_TEST_SUITE_P(
    Transforms, ByteBatches,
    ::testing::Values("", "scale: 0.017 mean_value: 104.5", "crop_size: 5 mirror: true scale: 0.1",
                      "crop_h: 9 crop_w: 4 mirror: true mean_value: 1 mean_value: 20 mean_value: 3",
                      "mean_file: 'MEAN' mirror: true",
                      "mean_file: 'MEAN' crop_size: 6 mirror: true"));

TEST(ByteBatch, TakesPicturesOfBothOrdersAndOfSeveralSizes) {
  const TestFolder folder;
  LmdbWriter writer(folder / "db");
  for (int i = 0; i < 8; ++i) {
    const std::string file = encode(ramp_picture(6 + i, 7, 3, i), ".png");
    writer.put(record_key(i),
               i % 2 ? write_datum({3, 6 + i, 7, i, true}, file) : ramp_datum(3, 6 + i, 7, i, i));
  }
  writer.finish();
  expect_equal(data_layer(folder / "db", 4, "", "crop_size: 5 mirror: true mean_value: 3"));
}

TEST(ByteBatch, IsMadeOnTheHostWhereAPictureHasFloats) {
  const TestFolder folder;
  Datum floats;
  floats.set_channels(1);
  floats.set_height(2);
  floats.set_width(2);
  floats.set_label(3);
  for (const float value : {0.5f, -1.f, 300.f, 7.f}) floats.add_float_data(value);
  std::vector<TestRecord> records;
  records.reserve(6);
  for (int i = 0; i < 6; ++i) {
    records.push_back(
        {record_key(i), i == 3 ? floats.SerializeAsString() : ramp_datum(1, 2, 2, i, i)});
  }
  write_database(folder / "db", records);
  const LayerParameter layer = data_layer(folder / "db", 2, "", "scale: 2");
  const std::unique_ptr<Feed> plain = feed_of(layer), bytes = feed_of(layer);
  bytes->hand_over_bytes(from_host());
  for (int i = 0; i < 6; ++i) {
    const std::vector<std::vector<float>> wanted = next_batch(*plain);
    const ByteBatch batch = bytes->next_bytes();
    EXPECT_EQ(batch.pixels == nullptr, i % 3 == 1) << "batch " << i;
    if (batch.floats != nullptr) {
      EXPECT_EQ(std::vector<float>(batch.floats, batch.floats + 8), wanted[0]);
    }
    EXPECT_EQ(std::vector<float>(batch.labels, batch.labels + 2), wanted[1]);
  }
}

TEST(ByteBatch, IsNotThereWherePicturesChangeOtherwise) {
  const TestFolder folder;
  write_numbers(folder / "db", 4);
  const auto has_bytes = [&](const std::string& transform) {
    return feed_of(data_layer(folder / "db", 2, "", transform))->byte_format().has_value();
  };
  EXPECT_TRUE(has_bytes("mirror: true"));
  EXPECT_FALSE(has_bytes("resize_param { height: 3 width: 3 }"));
  EXPECT_FALSE(has_bytes("noise_param { hist_eq: true }"));
}

TEST(ByteBatch, OfAListAreThePlainOnes) {
  const TestFolder folder;
  std::string list;
  for (int i = 0; i < 5; ++i) {
    const std::string name = str("p", i, ".png");
    folder.write(name, encode(ramp_picture(6, 5, 3, 9 * i), ".png"));
    list += str(name, " ", i, "\n");
  }
  folder.write("list.txt", list);
  expect_equal(
      layer_of(str("name: 'data' type: 'ImageData' top: 'data' top: 'label' "
                   "image_data_param { source: '",
                   folder / "list.txt", "' root_folder: '", folder.path(),
                   "/' batch_size: 3 shuffle: true } transform_param { crop_size: 4 "
                   "mirror: true scale: 0.5 mean_value: 9 }")));
}

}  // namespace
}  // namespace crema::testing
