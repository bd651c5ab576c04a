// WindowData: the window file, which windows are drawn, and what is cut out of a picture.
#include <algorithm>
#include <map>
#include <set>

#include "feed/window_file.h"
#include "feed_testing.h"
#include "io/mean.h"

namespace crema::testing {
namespace {

using Floats = std::vector<float>;

/// A gray picture whose pixel is 10 y + x.
Picture grid(int height, int width) {
  Picture picture{height, width, 1, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) picture.pixels.push_back(static_cast<uint8_t>(10 * y + x));
  }
  return picture;
}

class WindowFeed : public ::testing::Test {
 protected:
  void SetUp() override {
    write_text_file(folder_ / "a b.png", encode(grid(8, 10), ".png"));
    write_text_file(folder_ / "c.png", encode(grid(6, 6), ".png"));
  }

  /// The feed over a window file with this content.
  std::unique_ptr<Feed> open(const std::string& windows, const std::string& fields,
                             const std::string& transform, uint64_t seed = 1) {
    write_text_file(folder_ / "windows.txt", windows);
    const LayerParameter layer = layer_of(str(
        "name: 'data' type: 'WindowData' top: 'data' top: 'label' window_data_param { source: '",
        folder_ / "windows.txt", "' root_folder: '", folder_.path(), "/' ", fields,
        " } transform_param { ", transform, " }"));
    return make_feed(layer, {TRAIN, seed, "data"});
  }

  std::string error(const std::string& windows, const std::string& fields = "batch_size: 2",
                    const std::string& transform = "crop_size: 2") {
    return error_of([&] {
      const auto feed = open(windows, fields, transform);
      next_batch(*feed);
    });
  }

  TestFolder folder_;
};

/// One picture of 8 x 10 with these windows.
std::string on_grid(const std::vector<std::string>& windows) {
  std::string text = str("# 0\na b.png\n1\n8\n10\n", windows.size(), "\n");
  for (const std::string& window : windows) text += window + "\n";
  return text;
}

TEST(WindowFile, ReadsPicturesAndWindows) {
  const TestFolder folder;
  folder.write("w.txt",
               "# 0\r\n/my pictures/a.jpg \r\n3\r\n20\r\n30\r\n2\r\n15 0.75 1 2 29 19\r\n0 0 0 0 0 "
               "0\r\n# 7\nb.jpg\n3 5 6 0\n");
  const WindowFile file = read_windows(folder / "w.txt");
  ASSERT_EQ(file.pictures.size(), 2u);
  EXPECT_EQ(file.pictures[0].path, "/my pictures/a.jpg");
  EXPECT_EQ(file.pictures[0].height, 20);
  EXPECT_EQ(file.pictures[0].width, 30);
  EXPECT_EQ(file.pictures[1].path, "b.jpg");
  ASSERT_EQ(file.windows.size(), 2u);
  const PictureWindow& w = file.windows[0];
  EXPECT_EQ(w.label, 15);
  EXPECT_EQ(w.overlap, 0.75f);
  EXPECT_EQ((std::vector<int>{w.left, w.top, w.right, w.bottom}), (std::vector<int>{1, 2, 29, 19}));
  EXPECT_EQ(file.windows[1].picture, 0);
}

TEST(WindowFile, NamesTheLineThatIsWrong) {
  const TestFolder folder;
  const std::pair<const char*, const char*> rows[] = {
      {"", "w.txt: names no picture"},
      {"0\n", "w.txt:1: \"#\" and the picture's number were expected, not \"0\""},
      {"# x\n", "w.txt:1: the picture's number: \"x\" is not a number"},
      {"# 0\na.jpg\n3\n4\n", "the file ends before width"},
      {"# 0\na.jpg\n4\n4\n4\n0\n", "channels must be 1 or 3, not 4"},
      {"# 0\na.jpg\n3\n0\n4\n0\n", "height 0 and width 4 must be in 1..32768"},
      {"# 0\na.jpg\n3\n4\n4\n-1\n", "the number of windows must not be negative"},
      {"# 0\na.jpg\n3\n4\n4\n1\n1 x 0 0 1 1\n", "w.txt:7: overlap: \"x\" is not a number"},
      {"# 0\na.jpg\n3\n4\n4\n1\n1 nan 0 0 1 1\n", "overlap must be a number"},
      {"# 0\na.jpg\n3\n4\n4\n1\n-1 1 0 0 1 1\n", "class must not be negative, got -1"},
      {"# 0\na.jpg\n3\n4\n5\n1\n1 1 0 0 5 3\n",
       "the window 0 0 5 3 (left, top, right, bottom) does not lie in a picture of height 4, width "
       "5"},
      {"# 0\na.jpg\n3\n4\n5\n1\n1 1 3 0 2 3\n", "the window 3 0 2 3"},
      {"# 0\na.jpg\n3\n4\n5\n2\n1 1 0 0 2 3\n", "the file ends before class"},
      {"# 0\na.jpg\n3\n4\n5\n0\n# 1\nb.jpg\n1\n4\n4\n0\n",
       "has 1 channels, the pictures before it 3"},
  };
  for (const auto& [content, message] : rows) {
    folder.write("w.txt", content);
    EXPECT_HAS(error_of([&] { read_windows(folder / "w.txt"); }), message);
  }
  EXPECT_HAS(error_of([&] { read_windows(folder / "none.txt"); }), folder / "none.txt");
}

TEST_F(WindowFeed, CutsOutWarpsAndSubtracts) {
  const std::string windows = on_grid({"2 1 3 2 4 3"});
  const auto feed =
      open(windows, "batch_size: 1 fg_fraction: 1", "crop_size: 2 mean_value: 3 scale: 0.5");
  EXPECT_EQ(feed->shapes(), (Shapes{{1, 1, 2, 2}, {1}}));
  const auto tops = next_batch(*feed);
  EXPECT_EQ(tops[0], (Floats{10, 10.5f, 15, 15.5f}));
  EXPECT_EQ(tops[1], Floats{2});
  EXPECT_EQ(feed->keys(), std::vector<std::string>{"a b.png"});
  // Larger windows are resized as cv::resize does.
  const auto large = open(on_grid({"2 1 0 0 7 7"}), "batch_size: 1 fg_fraction: 1", "crop_size: 4");
  Picture part{8, 8, 1, {}};
  for (int i = 0; i < 64; ++i) part.pixels.push_back(static_cast<uint8_t>(10 * (i / 8) + i % 8));
  const Picture resized = resize(part, 4, 4);
  EXPECT_EQ(next_batch(*large)[0], Floats(resized.pixels.begin(), resized.pixels.end()));
}

TEST_F(WindowFeed, ContextIsWidenedAndPaddedWithTheMean) {
  // 2 x 2 becomes 4 x 4 with a pixel of context on each side.
  const auto inside =
      open(on_grid({"1 1 4 4 5 5"}), "batch_size: 1 fg_fraction: 1 context_pad: 1", "crop_size: 5");
  // 5 / (5 - 2) = 1.67: half 1 becomes 1.67 about (5, 5): 3..7, that is 5 pixels.
  EXPECT_EQ(next_batch(*inside)[0], (Floats{33, 34, 35, 36, 37, 43, 44, 45, 46, 47, 53, 54, 55,
                                            56, 57, 63, 64, 65, 66, 67, 73, 74, 75, 76, 77}));
  // About (1, 1): -1..3; what lies outside is 0 after the mean.
  const auto corner = open(on_grid({"1 1 0 0 1 1"}), "batch_size: 1 fg_fraction: 1 context_pad: 1",
                           "crop_size: 5 mean_value: 1");
  EXPECT_EQ(next_batch(*corner)[0], (Floats{0,  0,  0, 0,  0,  0,  -1, 0, 1,  2,  0,  9, 10,
                                            11, 12, 0, 19, 20, 21, 22, 0, 29, 30, 31, 32}));
}

TEST_F(WindowFeed, SquaresAreAsWideAsTheLongerSide) {
  // 1 x 3 about (4.5, 2.5), half 1.5: 3..6 by 1..4.
  const auto feed = open(on_grid({"1 1 3 2 5 2"}),
                         "batch_size: 1 fg_fraction: 1 crop_mode: 'square'", "crop_size: 4");
  EXPECT_EQ(next_batch(*feed)[0],
            (Floats{13, 14, 15, 16, 23, 24, 25, 26, 33, 34, 35, 36, 43, 44, 45, 46}));
}

TEST_F(WindowFeed, MirrorsWithThePadding) {
  const auto feed = open(on_grid({"1 1 0 0 1 1"}), "batch_size: 40 fg_fraction: 1 context_pad: 1",
                         "crop_size: 5 mirror: true");
  const Floats pictures = next_batch(*feed)[0];
  int mirrored = 0;
  for (size_t i = 0; i < 40; ++i) {
    const Floats row(pictures.begin() + static_cast<int64_t>(25 * i + 10),
                     pictures.begin() + static_cast<int64_t>(25 * i + 15));
    const bool is_mirrored = row == Floats({13, 12, 11, 10, 0});
    mirrored += is_mirrored;
    if (!is_mirrored) {
      EXPECT_EQ(row, Floats({0, 10, 11, 12, 13}));
    }
  }
  EXPECT_GT(mirrored, 8);
  EXPECT_LT(mirrored, 32);
}

TEST_F(WindowFeed, TheMiddleOfTheMeanFileIsSubtracted) {
  std::vector<float> mean(16, 99.0f);
  mean[5] = 1, mean[6] = 2, mean[9] = 3, mean[10] = 4;
  write_mean(folder_ / "mean", {Shape{1, 1, 4, 4}, mean, {}});
  const std::string field = str("mean_file: '", folder_ / "mean", "' crop_size: ");
  const auto feed = open(on_grid({"1 1 0 0 1 1"}), "batch_size: 1 fg_fraction: 1", field + "2");
  EXPECT_EQ(next_batch(*feed)[0], (Floats{-1, -1, 7, 7}));
  EXPECT_HAS(error(on_grid({"1 1 0 0 1 1"}), "batch_size: 1 fg_fraction: 1", field + "5"),
             "at least crop_size 5 are needed");
}

TEST_F(WindowFeed, DrawsBackgroundThenForeground) {
  const std::string windows = on_grid({"3 0.7 1 0 1 0", "4 0.5 2 0 2 0", "5 0.49 3 0 3 0",
                                       "6 0.2 4 0 4 0", "0 0 5 0 5 0"}) +
                              "# 1\nc.png\n1\n6\n6\n1\n7 1 0 5 0 5\n";
  for (const char* cache : {"", "cache_images: true"}) {
    const auto feed = open(windows, str("batch_size: 8 fg_fraction: 0.4 bg_threshold: 0.3 ", cache),
                           "crop_size: 1");
    std::map<float, std::set<float>> pixels_of_label;
    for (int i = 0; i < 20; ++i) {
      const auto tops = next_batch(*feed);
      for (size_t k = 0; k < 8; ++k) {
        EXPECT_EQ(tops[1][k] > 0, k >= 5) << "3 of 8 are foreground";
        pixels_of_label[tops[1][k]].insert(tops[0][k]);
      }
    }
    EXPECT_EQ(pixels_of_label,
              (std::map<float, std::set<float>>{{0, {4, 5}}, {3, {1}}, {4, {2}}, {7, {50}}}));
  }
}

TEST_F(WindowFeed, DrawsAreAFunctionOfSeedAndPosition) {
  const std::string windows = on_grid(
      {"1 1 1 0 1 0", "2 1 2 0 2 0", "3 1 3 0 3 0", "0 0 5 0 5 0", "0 0 6 0 6 0", "0 0 7 0 7 0"});
  const char* const kFields = "batch_size: 16 fg_fraction: 0.5";
  const auto whole = open(windows, kFields, "crop_size: 1 mirror: true");
  const auto first = next_batch(*whole), second = next_batch(*whole);
  EXPECT_NE(first, second);
  const auto resumed = open(windows, kFields, "crop_size: 1 mirror: true");
  resumed->seek(16);
  EXPECT_EQ(next_batch(*resumed), second);
  EXPECT_NE(next_batch(*open(windows, kFields, "crop_size: 1 mirror: true", 2)), first);
}

TEST_F(WindowFeed, RefusesWhatCannotBe) {
  const std::string both = on_grid({"1 1 0 0 1 1", "0 0 0 0 1 1"});
  EXPECT_HAS(error(both, "batch_size: 0"), "window_data_param: batch_size must be positive");
  EXPECT_HAS(error(both, "batch_size: 2", ""), "crop_size must be given");
  EXPECT_HAS(error(both, "batch_size: 2 context_pad: 1"),
             "context_pad 1 on both sides leaves nothing of crop_size 2");
  EXPECT_HAS(error(both, "batch_size: 2 crop_mode: 'wrap'"), "must be warp or square, not wrap");
  EXPECT_HAS(error(both, "batch_size: 2 fg_fraction: 1.5"), "fg_fraction must be in 0..1, not 1.5");
  EXPECT_HAS(error(both, "batch_size: 2", "crop_size: 2 max_rotation: 3"),
             "WindowData reads scale");
  EXPECT_HAS(error(both, "batch_size: 2", "crop_size: 2 mean_value: 1 mean_value: 2"),
             "2 mean_value for pictures of 1 channels");
  EXPECT_HAS(error(on_grid({"0 0 0 0 1 1"}), "batch_size: 2 fg_fraction: 0.5"),
             "no window has an overlap of fg_threshold (0.5) or more");
  EXPECT_HAS(error(on_grid({"1 1 0 0 1 1"})), "no window has an overlap below bg_threshold (0.5)");
  EXPECT_HAS(error(on_grid({"0 1 0 0 1 1"})),
             "a window on a b.png has the overlap 1 and the class 0");
  EXPECT_HAS(error("# 0\nc.png\n1\n8\n10\n1\n0 0 0 0 1 1\n"),
             "c.png: is of height 6, width 6, but");
  EXPECT_HAS(error("# 0\nnone.png\n1\n8\n10\n1\n0 0 0 0 1 1\n"),
             folder_ / "none.png: No such file");
  EXPECT_HAS(error("# 0\nnone.png\n1\n8\n10\n1\n0 0 0 0 1 1\n", "batch_size: 2 cache_images: true"),
             folder_ / "none.png: ");
}

}  // namespace
}  // namespace crema::testing
