// The feed of ImageData: list order, resize, transform, errors that name the file.
#include "feed_testing.h"
#include "io/mean.h"

namespace crema::testing {
namespace {

LayerParameter image_layer(const TestFolder& folder, const std::string& more,
                           const std::string& transform = "") {
  return layer_of(
      str("name: 'data' type: 'ImageData' top: 'data' top: 'label' image_data_param { source: '",
          folder / "list.txt", "' root_folder: '", folder.path(), "/' ", more,
          " } transform_param { ", transform, " }"));
}

std::unique_ptr<Feed> open(const LayerParameter& layer, Phase phase = TEST, uint64_t seed = 1) {
  return make_feed(layer, {phase, seed, layer.name()});
}

/// count gray pictures of 2x3 whose first pixel is 10 * i, labels i, in the list.
void write_pictures(const TestFolder& folder, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) {
    write_text_file(folder / str("p ", i, ".png"), encode(ramp_picture(2, 3, 1, 10 * i), ".png"));
    list += str("p ", i, ".png ", i, "\n");
  }
  write_text_file(folder / "list.txt", list);
}

TEST(ImageFeed, ReadsTheListInOrderWithBlanksInNames) {
  const TestFolder folder;
  write_pictures(folder, 3);
  const auto feed = open(image_layer(folder, "batch_size: 2 is_color: false"));
  EXPECT_EQ(feed->shapes(), (Shapes{{2, 1, 2, 3}, {2}}));
  auto tops = next_batch(*feed);
  EXPECT_EQ(tops[0], (std::vector<float>{0, 3, 6, 9, 12, 15, 10, 13, 16, 19, 22, 25}));
  EXPECT_EQ(tops[1], (std::vector<float>{0, 1}));
  EXPECT_EQ(feed->keys(), (std::vector<std::string>{"p 0.png", "p 1.png"}));
  EXPECT_EQ(next_batch(*feed)[1], (std::vector<float>{2, 0}));
}

TEST(ImageFeed, WrapsAsOftenAsNeededAndShufflesEachEpoch) {
  const TestFolder folder;
  write_pictures(folder, 5);
  const auto feed = open(image_layer(folder, "batch_size: 64 shuffle: true"));
  for (int i = 0; i < 3; ++i) {
    std::vector<int> counts(5);
    const auto tops = next_batch(*feed);
    for (float label : tops[1]) ++counts[static_cast<int>(label)];
    for (int count : counts) EXPECT_GE(count, 12);
  }
}

TEST(ImageFeed, SkipsAtRandomWhereAsked) {
  const TestFolder folder;
  write_pictures(folder, 5);
  std::vector<int> seen(5);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const LayerParameter layer = image_layer(folder, "batch_size: 2 rand_skip: 3");
    const std::vector<float> labels = next_batch(*open(layer, TEST, seed))[1];
    EXPECT_EQ(labels[1], labels[0] + 1);
    ++seen[static_cast<int>(labels[0])];
  }
  EXPECT_GT(seen[0] * seen[1] * seen[2], 0);
  EXPECT_EQ(seen[3] + seen[4], 0);
}

TEST(ImageFeed, ResizesBeforeTheMeanAndCrop) {
  const TestFolder folder;
  write_pictures(folder, 1);
  const Picture resized = resize(ramp_picture(2, 3, 1), 6, 6);
  write_mean(folder / "mean",
             {Shape{1, 1, 6, 6}, {resized.pixels.begin(), resized.pixels.end()}, {}});
  const auto feed =
      open(image_layer(folder, "batch_size: 50 is_color: false new_height: 6 new_width: 6",
                       str("crop_size: 4 mean_file: '", folder / "mean", "'")),
           TRAIN);
  EXPECT_EQ(feed->shapes()[0], (Shape{50, 1, 4, 4}));
  EXPECT_EQ(next_batch(*feed)[0], std::vector<float>(50 * 16, 0.f));
}

TEST(ImageFeed, NamesTheFileThatCannotBeUsed) {
  const TestFolder folder;
  write_pictures(folder, 3);
  write_text_file(folder / "large.png", encode(ramp_picture(4, 4, 1), ".png"));
  write_text_file(folder / "text.png", "text");
  for (const std::string bad : {"large.png", "text.png", "missing.png"}) {
    SCOPED_TRACE(bad);
    write_text_file(folder / "list.txt", "p 0.png 0\np 1.png 1\n" + bad + " 2\n");
    const auto feed = open(image_layer(folder, "batch_size: 2"));
    next_batch(*feed);
    EXPECT_HAS(error_of([&] { next_batch(*feed); }), (folder / bad) + ": ");
  }
}

TEST(ImageFeed, RefusesBadFieldsAtSetUp) {
  const TestFolder folder;
  write_pictures(folder, 3);
  struct Row {
    const char* more;
    const char* message;
  };
  const Row rows[] = {{"batch_size: 0", "batch_size"},
                      {"new_height: 3", "both or neither"},
                      {"rand_skip: 4000000000", "too large"}};
  for (const Row& row : rows) {
    EXPECT_HAS(error_of([&] { open(image_layer(folder, row.more)); }), row.message);
  }
  std::filesystem::remove(folder / "list.txt");
  EXPECT_HAS(error_of([&] { open(image_layer(folder, "batch_size: 1")); }), folder / "list.txt");
}

}  // namespace
}  // namespace crema::testing
