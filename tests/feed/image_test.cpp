// Pictures as files: what comes back, in which form, and what is refused.
#include "io/image.h"

#include "feed_testing.h"

namespace crema::testing {
namespace {

const std::string kFolder = CREMA_SOURCE_DIR "/tests/conformance/images/img/";

TEST(Image, PngKeepsEveryPixel) {
  for (int channels : {1, 3, 4}) {
    const Picture picture = ramp_picture(7, 5, channels);
    Picture back;
    decode(encode(picture, ".png"), ColorMode::as_stored, back);
    EXPECT_EQ(back, picture) << channels << " channels";
  }
}

TEST(Image, JpegKeepsSizeAndRoughValues) {
  const Picture picture{8, 9, 3, std::vector<uint8_t>(8 * 9 * 3, 100)};
  Picture back;
  decode(encode(picture, ".jpg"), ColorMode::color, back);
  ASSERT_EQ(back.pixels.size(), picture.pixels.size());
  for (uint8_t value : back.pixels) EXPECT_NEAR(value, 100, 3);
}

struct ModeRow {
  const char* file;
  int stored, color, gray;  // channels in each mode; 0: refused
};

TEST(Image, GivesTheChannelsAskedFor) {
  const ModeRow rows[] = {{"rgb0.png", 3, 3, 1},   {"gray.png", 1, 3, 1}, {"alpha.png", 4, 3, 1},
                          {"deep16.png", 0, 3, 1}, {"cmyk.jpg", 3, 3, 1}, {"photo.jpg", 3, 3, 1}};
  for (const ModeRow& row : rows) {
    SCOPED_TRACE(row.file);
    const auto channels = [&](ColorMode mode) {
      int count = 0;
      const std::string error =
          error_of([&] { count = read_picture(kFolder + row.file, mode).channels; });
      if (!error.empty()) {
        EXPECT_HAS(error, "more than 8 bits");
      }
      return count;
    };
    EXPECT_EQ(channels(ColorMode::as_stored), row.stored);
    EXPECT_EQ(channels(ColorMode::color), row.color);
    EXPECT_EQ(channels(ColorMode::gray), row.gray);
  }
}

TEST(Image, OrderIsBlueGreenRed) {
  // The encoder gets blue 10, green 20, red 30; a PNG stores them as red, green, blue.
  const Picture picture{1, 1, 3, {10, 20, 30}};
  Picture gray;
  decode(encode(picture, ".png"), ColorMode::gray, gray);
  EXPECT_NEAR(gray.pixels[0], 0.114 * 10 + 0.587 * 20 + 0.299 * 30, 1);
}

TEST(Image, ResizesBilinearlyBetweenPixelCentres) {
  const Picture picture{1, 2, 1, {0, 100}};
  EXPECT_EQ(resize(picture, 1, 4), (Picture{1, 4, 1, {0, 25, 75, 100}}));
  EXPECT_EQ(resize(picture, 3, 2), (Picture{3, 2, 1, {0, 100, 0, 100, 0, 100}}));
  EXPECT_HAS(error_of([&] { resize(picture, 0, 4); }), "0 x 4");
}

TEST(Image, DecodesJpegsAtReducedSize) {
  Picture smooth{96, 128, 3, {}};
  for (int i = 0; i < 96 * 128; ++i) {
    for (const int value : {i / 128, i % 128, (i / 128 + i % 128) / 2}) {
      smooth.pixels.push_back(static_cast<uint8_t>(value));
    }
  }
  const std::string jpeg = encode(smooth, ".jpg");
  struct Row {
    int height, width, reduction;
  };
  for (const Row& row : {Row{97, 1, 1}, Row{49, 49, 1}, Row{48, 48, 2}, Row{25, 40, 2},
                         Row{24, 24, 4}, Row{12, 12, 8}, Row{1, 1, 8}}) {
    EXPECT_EQ(jpeg_reduction(jpeg, row.height, row.width), row.reduction)
        << row.height << " x " << row.width;
  }
  EXPECT_EQ(jpeg_reduction(encode(smooth, ".png"), 1, 1), 1);
  EXPECT_EQ(jpeg_reduction(jpeg.substr(0, 20), 1, 1), 1);
  for (const int reduction : {2, 4, 8}) {
    Picture part, gray;
    decode(jpeg, ColorMode::color, part, reduction);
    decode(jpeg, ColorMode::gray, gray, reduction);
    ASSERT_EQ(part.height, 96 / reduction);
    ASSERT_EQ(part.width, 128 / reduction);
    ASSERT_EQ(part.channels, 3);
    EXPECT_EQ(gray.channels, 1);
    const Picture whole = resize(smooth, part.height, part.width);
    for (size_t i = 0; i < part.pixels.size(); ++i) {
      ASSERT_NEAR(part.pixels[i], whole.pixels[i], 4) << "at " << i << " of 1/" << reduction;
    }
  }
}

TEST(Image, RefusesWhatIsNoPicture) {
  const TestFolder folder;
  const std::string png = encode(ramp_picture(20, 20, 3), ".png");
  const std::string rows[] = {"", "text", "\xFF\xD8", png.substr(0, png.size() / 2),
                              png.substr(0, 10)};
  for (const std::string& bytes : rows) {
    SCOPED_TRACE(bytes.size());
    Picture out;
    EXPECT_NE(error_of([&] { decode(bytes, ColorMode::color, out); }), "");
    write_text_file(folder / "a.jpg", bytes);
    EXPECT_HAS(error_of([&] { read_picture(folder / "a.jpg", ColorMode::color); }),
               (folder / "a.jpg") + ": ");
  }
  EXPECT_HAS(error_of([&] { read_picture(folder / "none", ColorMode::color); }),
             "none: No such file");
  EXPECT_HAS(error_of([&] { read_picture(folder.path(), ColorMode::color); }), "is a folder");
  EXPECT_HAS(error_of([] { encode(ramp_picture(2, 2, 3), ".nonsense"); }), ".nonsense");
}

TEST(Image, TellsACutJpeg) {
  const std::string jpg = encode(ramp_picture(64, 48, 3), ".jpg");
  EXPECT_FALSE(is_cut_jpeg(jpg));
  EXPECT_FALSE(is_cut_jpeg(jpg + "trailing bytes"));
  EXPECT_FALSE(is_cut_jpeg(encode(ramp_picture(8, 8, 1), ".png")));
  EXPECT_FALSE(is_cut_jpeg(""));
  for (size_t size : {size_t{2}, size_t{3}, size_t{30}, jpg.size() / 2, jpg.size() - 1}) {
    EXPECT_TRUE(is_cut_jpeg(jpg.substr(0, size))) << size;
  }
}

// A file that ends early is taken as far as it goes; a database record like that is refused.
TEST(Image, ACutJpegFileGivesItsUpperPart) {
  const TestFolder folder;
  const std::string jpg = encode(ramp_picture(64, 64, 3), ".jpg");
  const std::string cut = jpg.substr(0, jpg.size() * 7 / 10);
  write_text_file(folder / "a.jpg", cut);
  Picture whole;
  decode(jpg, ColorMode::color, whole);
  const Picture part = read_picture(folder / "a.jpg", ColorMode::color);
  ASSERT_EQ(part.pixels.size(), whole.pixels.size());
  EXPECT_TRUE(
      std::equal(part.pixels.begin(), part.pixels.begin() + 64 * 3 * 8, whole.pixels.begin()));
  Picture out;
  EXPECT_HAS(error_of([&] { decode(cut, ColorMode::color, out); }), "ends early");
}

}  // namespace
}  // namespace crema::testing
