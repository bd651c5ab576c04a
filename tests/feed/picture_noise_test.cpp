// SSD's noise_param: known small pictures, and how often each change happens.
#include "feed/picture_noise.h"

#include <set>

#include "augmented.h"

namespace crema::testing {
namespace {

TEST(Noise, KnownValues) {
  const Picture colors{1, 2, 3, {0, 0, 255, 200, 100, 50}};
  EXPECT_EQ(noisy("inverse: true", colors).pixels, (Bytes{255, 255, 0, 55, 155, 205}));
  EXPECT_EQ(noisy("posterize: true", colors).pixels, (Bytes{32, 32, 224, 224, 96, 32}));
  // 0.299 red + 0.587 green + 0.114 blue.
  EXPECT_EQ(noisy("decolorize: true", colors).pixels, (Bytes{76, 76, 76, 96, 96, 96}));
  EXPECT_EQ(noisy("convert_to_hsv: true", Picture{1, 1, 3, {0, 0, 255}}).pixels,
            (Bytes{0, 255, 255}));
  EXPECT_EQ(noisy("convert_to_lab: true", Picture{1, 1, 3, {255, 255, 255}}).pixels,
            (Bytes{255, 128, 128}));
  EXPECT_EQ(noisy("hist_eq: true", Picture{1, 4, 1, {10, 10, 20, 30}}).pixels,
            (Bytes{0, 0, 128, 255}));
  EXPECT_EQ(noisy("erode: true", Picture{3, 3, 1, {9, 9, 9, 9, 1, 9, 9, 9, 9}}).pixels,
            (Bytes{9, 1, 9, 1, 1, 1, 9, 1, 9}));
  const Picture gray{2, 2, 1, {5, 5, 5, 5}};
  EXPECT_EQ(noisy("decolorize: true gauss_blur: true jpeg: 100", gray), gray);
  // The order: inverted after the levels.
  EXPECT_EQ(noisy("inverse: true posterize: true", Picture{1, 1, 1, {10}}).pixels, (Bytes{223}));
}

TEST(Noise, ChangesPictures) {
  Picture whole = counted(16, 16, 3);
  for (const char* fields : {"gauss_blur: true", "clahe: true", "jpeg: 5", "hist_eq: true"}) {
    const Picture changed = noisy(fields, whole);
    EXPECT_EQ(changed.channels, 3) << fields;
    EXPECT_NE(changed, whole) << fields;
  }
}

using Ends = std::set<std::pair<int, int>>;

TEST(Noise, SaltAndPepper) {
  const Picture gray{10, 10, 3, Bytes(300, 100)};
  const auto changed = [&](const std::string& fields, uint64_t record) {
    Ends values;  // of pixels: first and last channel
    const Picture picture =
        noisy("saltpepper: true saltpepper_param { " + fields + " }", gray, record);
    int count = 0;
    for (size_t i = 0; i < 300; i += 3) {
      if (picture.pixels[i] == 100) continue;
      ++count;
      values.emplace(picture.pixels[i], picture.pixels[i + 2]);
    }
    EXPECT_GT(count, 8) << "of 20 drawn";
    EXPECT_LE(count, 20);
    return values;
  };
  EXPECT_EQ(changed("fraction: 0.2", 3), (Ends{{0, 0}, {255, 255}}));
  EXPECT_EQ(changed("fraction: 0.2 value: 7", 3), (Ends{{7, 7}}));
  EXPECT_EQ(changed("fraction: 0.2 value: 1 value: 2 value: 3", 3), (Ends{{1, 3}}));
}

TEST(Noise, HappensWithItsProbability) {
  const Picture whole{1, 1, 1, {10}};
  int inverted = 0;
  for (uint64_t record = 0; record < 100; ++record) {
    inverted += noisy("prob: 0.3 inverse: true", whole, record) != whole;
    EXPECT_EQ(noisy("prob: 0 inverse: true", whole, record), whole);
    EXPECT_NE(noisy("inverse: true", whole, record), whole);
  }
  EXPECT_GT(inverted, 15);
  EXPECT_LT(inverted, 50);
}

}  // namespace
}  // namespace crema::testing
