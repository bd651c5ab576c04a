// AnnotatedData's feed: rows of boxes, and what crops, canvases and mirrors make of them.
#include <algorithm>
#include <cmath>

#include "feed/box_sampling.h"
#include "feed/picture_changes.h"
#include "feed_testing.h"

namespace crema::testing {
namespace {

struct TestBox {
  int label;
  Box box;
  bool is_difficult = false;
};

/// A gray 4 x 2 picture whose bytes count from `first`, with boxes.
std::string annotated(int first, const std::vector<TestBox>& boxes) {
  AnnotatedDatum record;
  Datum& datum = *record.mutable_datum();
  datum.set_channels(1);
  datum.set_height(2);
  datum.set_width(4);
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(first + i);
  datum.set_data(bytes);
  record.set_type(AnnotatedDatum::BBOX);
  for (const TestBox& b : boxes) {
    AnnotationGroup& group = *record.add_annotation_group();
    group.set_group_label(b.label);
    NormalizedBBox& box = *group.add_annotation()->mutable_bbox();
    box.set_xmin(b.box.xmin);
    box.set_ymin(b.box.ymin);
    box.set_xmax(b.box.xmax);
    box.set_ymax(b.box.ymax);
    box.set_difficult(b.is_difficult);
  }
  return record.SerializeAsString();
}

LayerParameter annotated_layer(const std::string& source, int batch,
                               const std::string& fields = "") {
  LayerParameter layer;
  parse_text(
      "name: \"data\" type: \"AnnotatedData\" top: \"data\" top: \"label\" data_param { source: "
      "\"" +
          source + "\" batch_size: " + std::to_string(batch) + " } " + fields,
      "test", &layer);
  return layer;
}
std::unique_ptr<Feed> open(const LayerParameter& layer, uint64_t seed = 1) {
  return make_feed(layer, {TRAIN, seed, layer.name(), 0, 1});
}

using Values = std::vector<float>;

TEST(AnnotatedFeed, GivesPicturesAndTheirBoxes) {
  const TestFolder folder;
  write_database(folder / "db",
                 {{"a", annotated(0, {{3, {0, 0, 0.5f, 1}}, {1, {0.25f, 0, 1, 0.5f}, true}})},
                  {"b", annotated(10, {})},
                  {"c", annotated(20, {{2, {0.5f, 0.5f, 1, 1}}})}});
  const auto feed = open(annotated_layer(folder / "db", 3));
  EXPECT_EQ(feed->shapes(), (Shapes{{3, 1, 2, 4}, {3, 2, 8}}));
  const auto tops = next_batch(*feed);
  EXPECT_EQ(Values(tops[0].begin(), tops[0].begin() + 9), (Values{0, 1, 2, 3, 4, 5, 6, 7, 10}));
  const Values none(8, -1.0f);
  Values expected = {0, 3, 0, 0, 0, 0.5f, 1, 0, 0, 1, 0, 0.25f, 0, 1, 0.5f, 1};
  for (int i = 0; i < 2; ++i) expected.insert(expected.end(), none.begin(), none.end());
  for (const float v : {0.0f, 2.0f, 0.0f, 0.5f, 0.5f, 1.0f, 1.0f, 0.0f}) expected.push_back(v);
  expected.insert(expected.end(), none.begin(), none.end());
  EXPECT_EQ(tops[1], expected);
}

TEST(AnnotatedFeed, MirrorsPicturesWithTheirBoxes) {
  const TestFolder folder;
  write_database(folder / "db", {{"a", annotated(0, {{1, {0, 0, 0.25f, 1}}})}});
  const auto feed = open(annotated_layer(folder / "db", 32, "transform_param { mirror: true }"));
  const auto tops = next_batch(*feed);
  int mirrored = 0;
  for (size_t i = 0; i < 32; ++i) {
    const bool is_mirrored = tops[0][i * 8] == 3;
    mirrored += is_mirrored;
    EXPECT_EQ(tops[0][i * 8], is_mirrored ? 3 : 0);
    EXPECT_EQ(tops[1][i * 8 + 3], is_mirrored ? 0.75f : 0) << i;
    EXPECT_EQ(tops[1][i * 8 + 5], is_mirrored ? 1 : 0.25f) << i;
  }
  EXPECT_GT(mirrored, 4);
  EXPECT_LT(mirrored, 28);
}

TEST(AnnotatedFeed, BoxesFollowThePadding) {
  const TestFolder folder;
  write_database(folder / "db", {{"a", annotated(10, {{1, {0.25f, 0, 0.5f, 0.5f}}})}});
  const auto feed = open(annotated_layer(
      folder / "db", 1,
      "transform_param { resize_param { resize_mode: FIT_LARGE_SIZE_AND_PAD height: 4 width: 4 "
      "pad_value: 7 } noise_param { inverse: true } }"));
  EXPECT_EQ(feed->shapes()[0], (Shape{1, 1, 4, 4}));
  const auto tops = next_batch(*feed);
  EXPECT_EQ(tops[0], (Values{248, 248, 248, 248, 245, 244, 243, 242, 241, 240, 239, 238, 248, 248,
                             248, 248}));
  EXPECT_EQ(tops[1], (Values{0, 1, 0, 0.25f, 0.25f, 0.5f, 0.5f, 0}));
}

const char* const kAugmented =
    "transform_param { mirror: true mean_value: 100 resize_param { height: 6 width: 5 } "
    "expand_param { prob: 0.5 max_expand_ratio: 3 } distort_param { brightness_prob: 0.5 "
    "brightness_delta: 32 contrast_prob: 0.5 contrast_lower: 0.5 contrast_upper: 1.5 } "
    "emit_constraint { emit_type: CENTER } } annotated_data_param { batch_sampler { max_sample: 1 "
    "max_trials: 1 } batch_sampler { sampler { min_scale: 0.3 max_scale: 1 min_aspect_ratio: 0.5 "
    "max_aspect_ratio: 2 } sample_constraint { min_jaccard_overlap: 0.3 } max_sample: 1 "
    "max_trials: "
    "50 } }";

TEST(AnnotatedFeed, AugmentsAsAFunctionOfSeedAndRecord) {
  const TestFolder folder;
  write_database(folder / "db", {{"a", annotated(0, {{1, {0.25f, 0.25f, 0.75f, 0.75f}}})},
                                 {"b", annotated(50, {{2, {0, 0, 0.5f, 0.5f}}})}});
  const LayerParameter layer = annotated_layer(folder / "db", 8, kAugmented);
  const auto first = open(layer);
  EXPECT_EQ(first->shapes(), (Shapes{{8, 1, 6, 5}, {8, 1, 8}}));
  const auto skipped = next_batch(*first);
  const auto second = next_batch(*first);
  EXPECT_NE(skipped, second);
  const auto resumed = open(layer);
  resumed->seek(8);
  EXPECT_EQ(next_batch(*resumed), second);
  EXPECT_NE(next_batch(*open(layer, 2)), skipped);
  for (size_t i = 0; i < 8; ++i) {
    const float* row = second[1].data() + i * 8;
    if (row[0] < 0) continue;
    EXPECT_EQ(row[1], i % 2 + 1);
    EXPECT_LE(0, row[3]);
    EXPECT_LT(row[3], row[5]);
    EXPECT_LE(row[5], 1);
    EXPECT_LT(row[4], row[6]);
  }
}

TEST(AnnotatedFeed, NamesWhatIsWrong) {
  const TestFolder folder;
  write_numbers(folder / "datums", 2);
  write_database(folder / "db", {{"a", annotated(0, {})}});
  EXPECT_HAS(error_of([&] { open(annotated_layer(folder / "datums", 1)); }), "record");
  AnnotatedDatum floats;
  floats.ParseFromString(annotated(0, {}));
  floats.mutable_datum()->clear_data();
  for (int i = 0; i < 8; ++i) floats.mutable_datum()->add_float_data(0.5F);
  write_database(folder / "floats", {{"a", floats.SerializeAsString()}});
  EXPECT_HAS(error_of([&] { open(annotated_layer(folder / "floats", 1)); }),
             "the picture must be encoded or bytes, not floats");
  const auto bad = [&](const std::string& fields) {
    return error_of([&] { open(annotated_layer(folder / "db", 1, fields)); });
  };
  EXPECT_HAS(bad("transform_param { crop_size: 2 }"), "crop_size is not read by AnnotatedData");
  EXPECT_HAS(bad("transform_param { resize_param { height: 2 } }"),
             "resize_param: height and width must be given");
  EXPECT_HAS(bad("transform_param { max_rotation: 3 }"), "are not read by AnnotatedData");
  EXPECT_HAS(bad("transform_param { img_rand_resize_lower: 3 img_rand_resize_upper: 4 }"),
             "are not read by AnnotatedData");
  EXPECT_HAS(bad("transform_param { noise_param { jpeg: 200 } }"), "quality of at most 100");
  EXPECT_HAS(bad("annotated_data_param { batch_sampler { sampler { min_scale: 0 } } }"),
             "min_scale 0 and max_scale 1 must be above 0");
  EXPECT_HAS(bad("transform_param { expand_param { max_expand_ratio: 0.5 } }"),
             "max_expand_ratio must be at least 1");
}

std::vector<LabeledBox> boxes(const std::vector<Box>& list) {
  std::vector<LabeledBox> out;
  for (const Box& box : list) out.push_back({1, 0, box, false});
  return out;
}
Values corners(const std::vector<LabeledBox>& list) {
  Values out;
  for (const LabeledBox& b : list) {
    for (const float v : {b.box.xmin, b.box.ymin, b.box.xmax, b.box.ymax}) out.push_back(v);
  }
  return out;
}

TEST(BoxSampling, BoxesOfACrop) {
  const Box crop{0.5f, 0.5f, 1, 1};
  const auto list = boxes({{0, 0, 0.75f, 1}, {0.5f, 0.5f, 0.75f, 1}, {0, 0, 0.5f, 0.5f}});
  auto all = list;
  move_to_crop(crop, nullptr, &all);
  EXPECT_EQ(corners(all), (Values{0, 0, 0.5f, 1, 0, 0, 0.5f, 1}));
  auto centered = list;
  EmitConstraint constraint;
  move_to_crop(crop, &constraint, &centered);
  EXPECT_EQ(corners(centered), (Values{0, 0, 0.5f, 1}));
  auto overlapping = list;
  constraint.set_emit_type(EmitConstraint::MIN_OVERLAP);
  constraint.set_emit_overlap(0.1f);
  move_to_crop(crop, &constraint, &overlapping);
  EXPECT_EQ(corners(overlapping), (Values{0, 0, 0.5f, 1, 0, 0, 0.5f, 1}));
}

TEST(BoxSampling, CropsMeetTheirConstraint) {
  BatchSampler sampler;
  parse_text(
      "sampler { min_scale: 0.3 max_scale: 0.9 min_aspect_ratio: 0.5 max_aspect_ratio: 2 } "
      "sample_constraint { min_jaccard_overlap: 0.5 } max_sample: 1 max_trials: 200",
      "test", &sampler);
  const auto list = boxes({{0.2f, 0.2f, 0.7f, 0.7f}});
  int cropped = 0;
  for (uint64_t key = 0; key < 50; ++key) {
    RandomStream random(key);
    const Box crop = draw_crop({sampler}, list, random);
    if (crop.width() == 1) continue;
    ++cropped;
    EXPECT_GE(box_overlap(crop, list[0].box), 0.5f);
    EXPECT_GE(crop.xmin, 0);
    EXPECT_LE(crop.xmax, 1.0001f);
    EXPECT_GE(crop.width() / crop.height(), 0.49f);
    EXPECT_LE(crop.width() / crop.height(), 2.01f);
  }
  EXPECT_GT(cropped, 25);
}

Picture counted(int height, int width) {
  Picture picture{height, width, 3, {}};
  for (int i = 0; i < height * width * 3; ++i) {
    picture.pixels.push_back(static_cast<uint8_t>(i * 7 % 256));
  }
  return picture;
}

TEST(PictureChanges, CropAndMirrorAndExpand) {
  const Picture whole = counted(4, 6);
  Picture part = whole;
  crop({0.5f, 0.25f, 1, 0.75f}, &part);
  EXPECT_EQ(part.width, 3);
  EXPECT_EQ(part.height, 2);
  EXPECT_EQ(part.pixels[0], whole.pixels[(6 + 3) * 3]);
  Picture twice = whole;
  mirror(&twice);
  EXPECT_EQ(twice.pixels[2], whole.pixels[5 * 3 + 2]);
  mirror(&twice);
  EXPECT_EQ(twice, whole);
  ExpansionParameter expansion;
  expansion.set_max_expand_ratio(3);
  RandomStream random(5);
  Picture large = whole;
  const Box canvas = expand(expansion, {9}, random, &large);
  EXPECT_GT(large.width, 6);
  EXPECT_EQ(large.pixels.size(), static_cast<size_t>(large.width * large.height * 3));
  // The canvas, as a crop of the picture, holds the picture where it was put.
  const auto left = static_cast<size_t>(std::lround(-canvas.xmin * 6));
  const auto top = static_cast<size_t>(std::lround(-canvas.ymin * 4));
  const size_t place = (top * static_cast<size_t>(large.width) + left) * 3;
  EXPECT_TRUE(std::equal(whole.pixels.begin(), whole.pixels.begin() + 18,
                         large.pixels.begin() + static_cast<std::ptrdiff_t>(place)));
}

DistortionParameter distortion(const std::string& text) {
  DistortionParameter param;
  parse_text(text, "test", &param);
  return param;
}

TEST(PictureChanges, Distortions) {
  RandomStream random(3);
  const Picture whole{1, 2, 3, {10, 20, 30, 200, 100, 50}};
  Picture changed = whole;
  distort(distortion("saturation_prob: 1 saturation_lower: 1 saturation_upper: 1 hue_prob: 1"),
          random, &changed);
  EXPECT_EQ(changed, whole) << "HSV and back";
  changed = whole;
  distort(distortion("contrast_prob: 1 contrast_lower: 2 contrast_upper: 2"), random, &changed);
  EXPECT_EQ(changed.pixels, (std::vector<uint8_t>{20, 40, 60, 255, 200, 100}));
  changed = whole;
  distort(distortion("saturation_prob: 1 saturation_lower: 0 saturation_upper: 0"), random,
          &changed);
  EXPECT_EQ(changed.pixels, (std::vector<uint8_t>{30, 30, 30, 200, 200, 200}));
  int moved = 0;
  for (int i = 0; i < 20; ++i) {
    changed = whole;
    distort(distortion("brightness_prob: 1 brightness_delta: 8"), random, &changed);
    const int delta = changed.pixels[0] - 10;
    moved += delta != 0;
    EXPECT_EQ(changed.pixels[1] - 20, delta);
    EXPECT_LE(std::abs(delta), 8);
  }
  EXPECT_GT(moved, 10);
}

}  // namespace
}  // namespace crema::testing
