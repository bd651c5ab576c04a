// The transform: crop, mean, scale, mirror against plain loops, and the rules of its fields.
#include "feed/transform.h"

#include <set>

#include "feed/transform_rows.h"
#include "feed_testing.h"
#include "io/mean.h"

namespace crema::testing {
namespace {

TransformationParameter transform_of(const std::string& text) {
  TransformationParameter param;
  parse_text(text, "test", &param);
  return param;
}

Pixels planes(const std::vector<uint8_t>& bytes, int channels, int height, int width) {
  return {channels, height, width, bytes.data(), nullptr, false};
}

std::vector<uint8_t> ramp(int count) {
  std::vector<uint8_t> bytes(count);
  for (int i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(7 * i + 3);
  return bytes;
}

std::vector<float> apply(const Transformer& transformer, const Pixels& pixels,
                         uint64_t record = 0) {
  std::vector<float> out(transformer.output_shape(pixels).count() + 1, 777.f);
  transformer.apply(pixels, record, out.data());
  EXPECT_EQ(out.back(), 777.f) << "written behind the end";
  out.pop_back();
  return out;
}

// Every combination of element type, order, window and mirror, on sizes that fill no vector
// register.
TEST(Transform, RowsEqualPlainLoops) {
  const std::vector<uint8_t> bytes = ramp(4000);
  std::vector<float> floats(bytes.begin(), bytes.end()), means(4000);
  for (int i = 0; i < 4000; ++i) means[i] = 0.37f * i;
  for (int step : {1, 3, 4}) {
    for (int width : {1, 7, 8, 31, 33}) {
      for (int mode = 0; mode < 16; ++mode) {
        RowBlock b;
        b.bytes = mode & 1 ? bytes.data() : nullptr;
        b.floats = floats.data();
        b.step = step;
        b.height = 5;
        b.width = width;
        b.pitch = step * (width + (mode & 8 ? 2 : 0));
        b.mean_row = mode & 2 ? means.data() : nullptr;
        b.mean_pitch = width + (mode & 8 ? 2 : 0);
        b.mean = 12.3f;
        b.scale = 0.7f;
        b.is_mirrored = mode & 4;
        std::vector<float> got(5 * width + 1, 777.f);
        transform_rows(b, got.data());
        for (int y = 0; y < 5; ++y) {
          for (int x = 0; x < width; ++x) {
            const float mean = b.mean_row ? means[y * b.mean_pitch + x] : b.mean;
            const float want = (floats[y * b.pitch + x * step] - mean) * b.scale;
            ASSERT_EQ(got[y * width + (b.is_mirrored ? width - 1 - x : x)], want)
                << "step " << step << " width " << width << " mode " << mode << " at " << y << ","
                << x;
          }
        }
        ASSERT_EQ(got.back(), 777.f);
      }
    }
  }
}

struct CropRow {
  int crop;
  Phase phase;
  std::set<std::pair<int, int>> offsets;  // that may occur; all of them must in 200 draws
};

TEST(Transform, CropOffsets) {
  const std::vector<uint8_t> bytes = ramp(36);
  const CropRow rows[] = {{0, TRAIN, {{0, 0}}}, {6, TRAIN, {{0, 0}}},
                          {6, TEST, {{0, 0}}},  {5, TEST, {{0, 0}}},
                          {3, TEST, {{1, 1}}},  {5, TRAIN, {{0, 0}, {0, 1}, {1, 0}, {1, 1}}}};
  for (const CropRow& row : rows) {
    SCOPED_TRACE(str("crop ", row.crop, row.phase == TRAIN ? " TRAIN" : " TEST"));
    const Transformer transformer(transform_of(str("crop_size: ", row.crop)), row.phase, 5);
    const Pixels pixels = planes(bytes, 1, 6, 6);
    std::set<std::pair<int, int>> seen;
    for (uint64_t record = 0; record < 200; ++record) {
      const std::vector<float> out = apply(transformer, pixels, record);
      const int size = row.crop ? row.crop : 6;
      for (int at = 0; at < 36; ++at) {
        if (out[0] == bytes[at] && at % 6 + size <= 6 && at / 6 + size <= 6) {
          seen.insert({at / 6, at % 6});
          EXPECT_EQ(out.back(), bytes[at + 6 * (size - 1) + size - 1]);
        }
      }
    }
    EXPECT_EQ(seen, row.offsets);
  }
}

TEST(Transform, MirrorsHalfOfTheRecordsInBothPhases) {
  const std::vector<uint8_t> bytes = {1, 2, 3, 4, 5, 6};
  for (Phase phase : {TRAIN, TEST}) {
    const Transformer transformer(transform_of("mirror: true"), phase, 9);
    int mirrored = 0;
    for (uint64_t record = 0; record < 400; ++record) {
      const std::vector<float> out = apply(transformer, planes(bytes, 1, 2, 3), record);
      const bool is_mirrored = out == std::vector<float>{3, 2, 1, 6, 5, 4};
      if (!is_mirrored) {
        EXPECT_EQ(out, (std::vector<float>{1, 2, 3, 4, 5, 6}));
      }
      mirrored += is_mirrored;
    }
    EXPECT_GT(mirrored, 150);
    EXPECT_LT(mirrored, 250);
  }
}

TEST(Transform, ScalesAfterTheMean) {
  const std::vector<uint8_t> bytes = {10, 20, 30, 40};
  const Transformer one(transform_of("mean_value: 5 scale: 2"), TEST, 0);
  EXPECT_EQ(apply(one, planes(bytes, 2, 1, 2)), (std::vector<float>{10, 30, 50, 70}));
  const Transformer two(transform_of("mean_value: 5 mean_value: 10 scale: 2"), TEST, 0);
  EXPECT_EQ(apply(two, planes(bytes, 2, 1, 2)), (std::vector<float>{10, 30, 40, 60}));
}

TEST(Transform, InterleavedPicturesBecomePlanes) {
  const Picture picture{1, 2, 3, {1, 2, 3, 4, 5, 6}};
  const Transformer transformer(transform_of("mean_value: 1 mean_value: 2 mean_value: 3"), TEST, 0);
  EXPECT_EQ(apply(transformer, pixels_of(picture)), (std::vector<float>{0, 3, 0, 3, 0, 3}));
}

// The mean has the size before cropping and moves with the crop: subtracting a picture from itself
// leaves 0 everywhere.
TEST(Transform, MeanFileIsCroppedWithThePicture) {
  const TestFolder folder;
  const std::vector<uint8_t> bytes = ramp(2 * 4 * 4);
  write_mean(folder / "mean", {Shape{1, 2, 4, 4}, {bytes.begin(), bytes.end()}, {}});
  const Transformer transformer(
      transform_of(str("crop_size: 2 mean_file: '", folder / "mean", "'")), TRAIN, 1);
  for (uint64_t record = 0; record < 50; ++record) {
    EXPECT_EQ(apply(transformer, planes(bytes, 2, 4, 4), record), std::vector<float>(8, 0.f));
  }
}

struct BadTransform {
  const char* text;
  std::vector<std::string> parts;
};

TEST(Transform, RefusesWhatDoesNotFit) {
  const TestFolder folder;
  write_mean(folder / "mean", {Shape{1, 3, 5, 6}, std::vector<float>(90, 1.f), {}});
  const BadTransform rows[] = {
      {"crop_size: 7", {"crop_size 7", "height 6", "width 6"}},
      {"mean_value: 1 mean_value: 2", {"2 mean_value", "3 channels"}},
      {"mean_value: 1 mean_file: 'MEAN'", {"mean_file and mean_value exclude each other"}},
      {"force_color: true force_gray: true", {"exclude each other"}},
      {"mean_file: 'MEAN'", {"has shape 1 3 5 6", "3 x 6 x 6"}},
      {"mean_file: '/no/such/mean'", {"/no/such/mean", "No such file"}},
  };
  const std::vector<uint8_t> bytes = ramp(108);
  for (const BadTransform& row : rows) {
    SCOPED_TRACE(row.text);
    std::string text = row.text;
    if (const size_t at = text.find("MEAN"); at != std::string::npos)
      text.replace(at, 4, folder / "mean");
    const std::string error = error_of(
        [&] { Transformer(transform_of(text), TEST, 0).output_shape(planes(bytes, 3, 6, 6)); });
    for (const std::string& part : row.parts) EXPECT_HAS(error, part);
  }
}

}  // namespace
}  // namespace crema::testing
