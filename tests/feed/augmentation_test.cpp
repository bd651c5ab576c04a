// The fields of SSD and NVCaffe that change a picture before its crop: known small pictures, and
// that every draw is a function of seed and record.
#include "feed/augmentation.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "augmented.h"
#include "feed/picture_changes.h"
#include "feed/picture_resizing.h"
#include "io/mean.h"

namespace crema::testing {
namespace {

using Sizes = std::set<std::pair<int, int>>;  // height, width

ResizeParameter resize_of(const std::string& text) {
  ResizeParameter param;
  parse_text(text, "test", &param);
  return param;
}

Sizes sizes_of(const std::string& fields, int height, int width) {
  Sizes sizes;
  for (uint64_t record = 0; record < 100; ++record) {
    const Picture picture = augmented(fields, counted(height, width), record);
    sizes.emplace(picture.height, picture.width);
  }
  return sizes;
}

TEST(Resizing, WarpsInEachInterpolation) {
  const Picture whole = counted(6, 9, 3);
  const std::pair<const char*, Interpolation> rows[] = {{"LINEAR", Interpolation::linear},
                                                        {"AREA", Interpolation::area},
                                                        {"NEAREST", Interpolation::nearest},
                                                        {"CUBIC", Interpolation::cubic},
                                                        {"LANCZOS4", Interpolation::lanczos}};
  std::set<Bytes> different;
  for (const auto& [mode, how] : rows) {
    const Picture got =
        augmented(str("resize_param { height: 4 width: 5 interp_mode: ", mode, " }"), whole);
    EXPECT_EQ(got, resize(whole, 4, 5, how)) << mode;
    different.insert(got.pixels);
  }
  EXPECT_EQ(different.size(), 5u);
  std::set<Bytes> drawn;
  for (uint64_t record = 0; record < 40; ++record) {
    drawn.insert(
        augmented("resize_param { height: 4 width: 5 interp_mode: AREA interp_mode: CUBIC }", whole,
                  record)
            .pixels);
  }
  EXPECT_EQ(drawn, (std::set<Bytes>{resize(whole, 4, 5, Interpolation::area).pixels,
                                    resize(whole, 4, 5, Interpolation::cubic).pixels}));
}

TEST(Resizing, FitsAndPads) {
  RandomStream random(1);
  struct Row {
    const char* fields;
    Bytes pixels;
  };
  const Row rows[] = {
      {"", {0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0}},
      {"pad_value: 9", {9, 9, 9, 1, 2, 3, 4, 5, 6, 9, 9, 9}},
      {"pad_mode: MIRRORED", {4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3}},
      {"pad_mode: REPEAT_NEAREST", {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}},
  };
  for (const Row& row : rows) {
    Picture picture{2, 3, 1, {1, 2, 3, 4, 5, 6}};
    const Box seen = resize(
        resize_of(str("resize_mode: FIT_LARGE_SIZE_AND_PAD height: 4 width: 3 ", row.fields)),
        random, &picture);
    EXPECT_EQ(picture.height, 4);
    EXPECT_EQ(picture.width, 3);
    EXPECT_EQ(picture.pixels, row.pixels) << row.fields;
    EXPECT_EQ(seen.ymin, -0.5f);
    EXPECT_EQ(seen.ymax, 1.5f);
    EXPECT_EQ(seen.xmin, 0);
    EXPECT_EQ(seen.xmax, 1);
  }
  Picture tall{3, 1, 3, {1, 1, 1, 2, 2, 2, 3, 3, 3}};
  resize(
      resize_of("resize_mode: FIT_LARGE_SIZE_AND_PAD height: 3 width: 2 pad_value: 5 pad_value: 6 "
                "pad_value: 7"),
      random, &tall);
  EXPECT_EQ(tall.pixels, (Bytes{1, 1, 1, 5, 6, 7, 2, 2, 2, 5, 6, 7, 3, 3, 3, 5, 6, 7}));
}

TEST(Resizing, CoversWithItsShorterSide) {
  const char* const kFields = "resize_param { resize_mode: FIT_SMALL_SIZE height: 4 width: 4 }";
  EXPECT_EQ(sizes_of(kFields, 8, 20), (Sizes{{4, 10}}));
  EXPECT_EQ(sizes_of(kFields, 9, 6), (Sizes{{6, 4}}));
  EXPECT_EQ(sizes_of("resize_param { resize_mode: FIT_SMALL_SIZE height_scale: 2 width_scale: 2 }",
                     8, 20),
            (Sizes{{2, 5}}));
}

TEST(Resizing, HappensWithItsProbability) {
  EXPECT_EQ(sizes_of("resize_param { height: 3 width: 3 prob: 0.5 }", 5, 5),
            (Sizes{{3, 3}, {5, 5}}));
  EXPECT_EQ(sizes_of("resize_param { height: 3 width: 3 prob: 0 }", 5, 5), (Sizes{{5, 5}}));
}

TEST(RandomSize, ShorterSideIsDrawn) {
  const std::string fields = "img_rand_resize_lower: 4 img_rand_resize_upper: 6";
  EXPECT_EQ(sizes_of(fields, 10, 20), (Sizes{{4, 8}, {5, 10}, {6, 12}}));
  EXPECT_EQ(sizes_of(fields, 20, 10), (Sizes{{8, 4}, {10, 5}, {12, 6}}));
}

TEST(RandomSize, GrowsOnlyWhereAllowedAndNeverBelowTheCrop) {
  const std::string fields = "img_rand_resize_lower: 12 img_rand_resize_upper: 12 ";
  EXPECT_EQ(sizes_of(fields, 6, 9), (Sizes{{6, 9}}));
  EXPECT_EQ(sizes_of(fields + "allow_upscale: true", 6, 9), (Sizes{{12, 18}}));
  EXPECT_EQ(sizes_of("img_rand_resize_lower: 2 img_rand_resize_upper: 2 crop_size: 3", 6, 9),
            (Sizes{{3, 3}}));
  EXPECT_EQ(sizes_of("img_rand_resize_lower: 2 img_rand_resize_upper: 2 crop_h: 3 crop_w: 5", 6, 9),
            (Sizes{{3, 5}}));
}

TEST(RandomSize, RatiosAndStretches) {
  // The longer side becomes a multiple of the shorter one; of a square either side.
  EXPECT_EQ(sizes_of("rand_resize_ratio_lower: 1.5 rand_resize_ratio_upper: 1.5", 10, 20),
            (Sizes{{10, 15}}));
  EXPECT_EQ(
      sizes_of("rand_resize_ratio_lower: 1.5 rand_resize_ratio_upper: 1.5 allow_upscale: true", 10,
               10),
      (Sizes{{10, 15}, {15, 10}}));
  EXPECT_EQ(sizes_of("vertical_stretch_lower: 0.5 vertical_stretch_upper: 0.5", 10, 20),
            (Sizes{{5, 20}}));
  const Sizes sizes = sizes_of("horizontal_stretch_lower: 0.8 horizontal_stretch_upper: 1", 10, 20);
  EXPECT_EQ(sizes, (Sizes{{10, 16}, {10, 17}, {10, 18}, {10, 19}, {10, 20}}));
}

TEST(RandomSize, InterpolationFollowsTheDirection) {
  const Picture whole = counted(6, 6);
  const std::string smaller = "img_rand_resize_lower: 4 img_rand_resize_upper: 4 ";
  EXPECT_EQ(augmented(smaller, whole), resize(whole, 4, 4, Interpolation::nearest));
  EXPECT_EQ(augmented(smaller + "interpolation_algo_down: INTER_AREA", whole),
            resize(whole, 4, 4, Interpolation::area));
  const std::string larger =
      "allow_upscale: true img_rand_resize_lower: 9 img_rand_resize_upper: 9 ";
  EXPECT_EQ(augmented(larger, whole), resize(whole, 9, 9, Interpolation::cubic));
  EXPECT_EQ(augmented(larger + "interpolation_algo_up: INTER_LINEAR", whole),
            resize(whole, 9, 9, Interpolation::linear));
}

TEST(Rotation, TurnsAboutTheMiddle) {
  Picture quarter{3, 3, 1, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  Picture half = quarter, none = quarter, back = quarter;
  rotate(90, &quarter);
  EXPECT_EQ(quarter.pixels, (Bytes{3, 6, 9, 2, 5, 8, 1, 4, 7}));
  rotate(180, &half);
  EXPECT_EQ(half.pixels, (Bytes{9, 8, 7, 6, 5, 4, 3, 2, 1}));
  rotate(-90, &back);
  EXPECT_EQ(back.pixels, (Bytes{7, 4, 1, 8, 5, 2, 9, 6, 3}));
  rotate(0, &none);
  EXPECT_EQ(none.pixels, (Bytes{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  Picture wide{1, 2, 3, {0, 0, 0, 100, 200, 50}};
  rotate(180, &wide);
  EXPECT_EQ(wide.pixels, (Bytes{100, 200, 50, 0, 0, 0}));
}

TEST(Rotation, IsDrawnFromBothDirections) {
  // Of a picture whose left half is dark, the sum of the upper right corner tells the direction.
  Picture half{21, 21, 1, {}};
  for (int i = 0; i < 21 * 21; ++i)
    half.pixels.push_back(i % 21 < 10 ? 0 : (i % 21 > 10 ? 200 : 100));
  int left = 0, right = 0;
  for (uint64_t record = 0; record < 60; ++record) {
    const Picture turned = augmented("max_rotation: 30", half, record);
    const int top = turned.pixels[10], bottom = turned.pixels[20 * 21 + 10];
    left += top < bottom;
    right += top > bottom;
    // No more than 30 degrees: the middles of the left and right border stay what they are.
    EXPECT_EQ(turned.pixels[10 * 21], 0);
    EXPECT_EQ(turned.pixels[10 * 21 + 20], 200);
  }
  EXPECT_GT(left, 15);
  EXPECT_GT(right, 15);
}

TEST(Augmentation, RefusesWhatCannotBe) {
  const Picture whole = counted(4, 4, 3);
  const std::pair<const char*, const char*> rows[] = {
      {"resize_param { height: 3 }", "resize_param: height and width must be given"},
      {"resize_param { height: 3 width: 3 prob: 2 }", "resize_param: prob must be in 0..1, not 2"},
      {"resize_param { height: 3 width: 3 height_scale: 3 }",
       "height_scale and width_scale must be given both or neither"},
      {"resize_param { height: 3 width: 3 height_scale: 3 width_scale: 3 }",
       "are for resize_mode FIT_SMALL_SIZE"},
      {"resize_param { resize_mode: FIT_LARGE_SIZE_AND_PAD height: 3 width: 8 pad_value: 1 "
       "pad_value: 2 }",
       "resize_param: 2 pad_value for pictures of 3 channels; give 1 or 3"},
      {"img_rand_resize_lower: 3",
       "img_rand_resize_lower and img_rand_resize_upper must be given both"},
      {"img_rand_resize_lower: 5 img_rand_resize_upper: 3", "img_rand_resize_lower 5"},
      {"rand_resize_ratio_lower: 0.5 rand_resize_ratio_upper: 2", "must be at least 1"},
      {"vertical_stretch_lower: 0", "vertical_stretch_lower 0"},
      {"horizontal_stretch_upper: 0.5", "horizontal_stretch_lower 1"},
      {"max_rotation: -3", "max_rotation must be in 0..180 degrees, not -3"},
      {"noise_param { jpeg: 101 }", "jpeg is a quality of at most 100"},
      {"noise_param { saltpepper_param { fraction: 2 } }", "fraction must be in 0..1, not 2"},
      {"noise_param { convert_to_hsv: true convert_to_lab: true }", "exclude each other"},
      {"noise_param { saltpepper: true saltpepper_param { fraction: 1 value: 1 value: 2 } }",
       "saltpepper_param: 2 value for pictures of 3 channels; give 1 or 3"},
      {"expand_param { max_expand_ratio: 0.5 }", "max_expand_ratio must be at least 1"},
      {"expand_param { max_expand_ratio: 1000 }", "max_expand_ratio may be at most 100"},
      {"mean_value: 1 mean_value: 2 expand_param { max_expand_ratio: 2 }",
       "2 mean_value for pictures of 3 channels; give 1 or 3"},
  };
  for (const auto& [fields, message] : rows) {
    EXPECT_HAS(error_of([&] { augmented(fields, whole); }), message);
  }
  EXPECT_HAS(error_of([&] { noisy("convert_to_hsv: true", counted(2, 2)); }),
             "the picture has 1 channels, 3 are needed");
  const std::vector<float> floats(4, 1.0f);
  Picture storage;
  EXPECT_HAS(error_of([&] {
               Augmentation(transform_of("max_rotation: 3"), 1)
                   .changed({1, 2, 2, nullptr, floats.data(), false}, 0, storage);
             }),
             "must be encoded or bytes, not floats");
}

TEST(Augmentation, WithoutChanceKeepsTheSizes) {
  const TransformationParameter kept = without_chance(transform_of(
      "scale: 2 mirror: true crop_size: 3 mean_value: 4 img_rand_resize_lower: 6 "
      "img_rand_resize_upper: 8 max_rotation: 4 vertical_stretch_upper: 2 noise_param { } "
      "expand_param { } distort_param { } random_seed: 4 resize_param { prob: 0.5 height: 3 "
      "interp_mode: AREA interp_mode: CUBIC }"));
  EXPECT_EQ(kept.ShortDebugString(),
            transform_of("scale: 2 crop_size: 3 mean_value: 4 img_rand_resize_lower: 7 "
                         "img_rand_resize_upper: 7 resize_param { height: 3 interp_mode: AREA }")
                .ShortDebugString());
}

const char* const kAll =
    "crop_h: 5 crop_w: 4 mirror: true mean_value: 3 distort_param { brightness_prob: 0.5 "
    "brightness_delta: 20 } expand_param { prob: 0.5 max_expand_ratio: 2 } resize_param { height: "
    "12 "
    "width: 12 interp_mode: LINEAR interp_mode: AREA } img_rand_resize_lower: 6 "
    "img_rand_resize_upper: 9 max_rotation: 20 noise_param { prob: 0.5 saltpepper: true "
    "saltpepper_param { fraction: 0.1 } }";

/// Twice 8 records of db's 3, from the start and after a resume.
void expect_reproducible(const std::function<LayerParameter(const std::string&)>& layer,
                         const Shape& shape) {
  const auto open = [&](uint64_t seed, const std::string& more) {
    return make_feed(layer(str(kAll, " ", more)), {TRAIN, seed, "data"});
  };
  const auto whole = open(1, "");
  EXPECT_EQ(whole->shapes()[0], shape);
  const auto first = next_batch(*whole), second = next_batch(*whole);
  EXPECT_NE(first[0], second[0]);
  const auto resumed = open(1, "");
  resumed->seek(8);
  EXPECT_EQ(next_batch(*resumed), second);
  EXPECT_NE(next_batch(*open(2, ""))[0], first[0]);
  const auto own_seed = next_batch(*open(1, "random_seed: 7"));
  EXPECT_NE(own_seed[0], first[0]);
  EXPECT_EQ(next_batch(*open(2, "random_seed: 7")), own_seed) << "whatever the run's seed is";
}

TEST(AugmentedFeed, DataIsAFunctionOfSeedAndRecord) {
  const TestFolder folder;
  write_database(folder / "db", {{"0", ramp_datum(3, 9, 11, 0)},
                                 {"1", ramp_datum(3, 9, 11, 1, 50)},
                                 {"2", ramp_datum(3, 7, 8, 2, 90)}});
  expect_reproducible(
      [&](const std::string& fields) { return data_layer(folder / "db", 8, "", fields); },
      Shape{8, 3, 5, 4});
}

TEST(AugmentedFeed, ImageDataIsAFunctionOfSeedAndRecord) {
  const TestFolder folder;
  std::string list;
  for (int i = 0; i < 3; ++i) {
    write_text_file(folder / str(i, ".png"), encode(ramp_picture(9 + i, 10, 3, 40 * i), ".png"));
    list += str(i, ".png ", i, "\n");
  }
  write_text_file(folder / "list.txt", list);
  expect_reproducible(
      [&](const std::string& fields) {
        return layer_of(
            str("name: 'data' type: 'ImageData' top: 'data' top: 'label' "
                "image_data_param { source: '",
                folder / "list.txt", "' root_folder: '", folder.path(),
                "/' batch_size: 8 } transform_param { ", fields, " }"));
      },
      Shape{8, 3, 5, 4});
}

TEST(AugmentedFeed, PicturesOfSeveralSizesMeetInOneBatch) {
  const TestFolder folder;
  write_database(folder / "db", {{"0", ramp_datum(1, 4, 8, 0)}, {"1", ramp_datum(1, 6, 6, 1)}});
  const auto feed = make_feed(
      data_layer(folder / "db", 2, "", "resize_param { height: 2 width: 3 }"), {TEST, 1, "data"});
  EXPECT_EQ(feed->shapes()[0], (Shape{2, 1, 2, 3}));
  next_batch(*feed);
  const auto other =
      make_feed(data_layer(folder / "db", 2, "",
                           "resize_param { resize_mode: FIT_SMALL_SIZE height: 2 width: 2 }"),
                {TEST, 1, "data"});
  EXPECT_HAS(error_of([&] { next_batch(*other); }), "all pictures of a batch must have one size");
}

TEST(AugmentedFeed, TheMiddleOfTheMeanIsSubtracted) {
  const TestFolder folder;
  std::vector<float> mean(36, 50.0f);
  for (int y = 2; y < 4; ++y) {
    for (int x = 2; x < 4; ++x) mean[static_cast<size_t>(6 * y + x)] = 10;
  }
  write_mean(folder / "mean", {Shape{1, 1, 6, 6}, mean, {}});
  write_database(folder / "db", {{"0", write_datum({1, 4, 4, 0, false}, std::string(16, '\x0a'))}});
  const auto open = [&](const std::string& fields) {
    return make_feed(
        data_layer(folder / "db", 1, "", str("mean_file: '", folder / "mean", "' ", fields)),
        {TEST, 1, "data"});
  };
  const auto feed = open("crop_size: 2 img_rand_resize_lower: 3 img_rand_resize_upper: 3");
  EXPECT_EQ(next_batch(*feed)[0], (std::vector<float>{0, 0, 0, 0}));
  EXPECT_HAS(error_of([&] { open("crop_size: 2"); }), "but the pictures are 1 x 4 x 4");
  EXPECT_HAS(error_of([&] { open("resize_param { height: 8 width: 8 }"); }),
             "but the pictures are 1 x 8 x 8");
}

TEST(AugmentedFeed, CropsOfTwoSides) {
  const TestFolder folder;
  write_numbers(folder / "db", 1);
  const auto error = [&](const std::string& fields) {
    return error_of([&] {
      make_feed(data_layer(folder / "db", 1, "", fields), {TEST, 1, "data"});
    });
  };
  EXPECT_HAS(error("crop_h: 1"), "crop_h and crop_w must be given both or neither");
  EXPECT_HAS(error("crop_size: 1 crop_h: 1 crop_w: 1"), "exclude each other");
  EXPECT_HAS(error("crop_h: 1 crop_w: 2"),
             "the crop of height 1, width 2 is larger than the picture (height 1, width 1)");
  write_database(folder / "ramp", {{"0", ramp_datum(1, 4, 5, 0)}});
  const auto feed =
      make_feed(data_layer(folder / "ramp", 1, "", "crop_h: 2 crop_w: 3"), {TEST, 1, "data"});
  EXPECT_EQ(next_batch(*feed)[0], (std::vector<float>{6, 7, 8, 11, 12, 13}));
}

}  // namespace
}  // namespace crema::testing
