// The feed of Data: batches in order, wrapping, decoding, errors that name the record, exact
// resume.
#include <thread>

#include "base/file.h"
#include "feed/loaders.h"
#include "feed/prefetch_feed.h"
#include "feed_testing.h"

namespace crema::testing {
namespace {

std::unique_ptr<Feed> open(const LayerParameter& layer, Phase phase = TEST, uint64_t seed = 1,
                           int rank = 0, int ranks = 1) {
  return make_feed(layer, {phase, seed, layer.name(), rank, ranks});
}

std::vector<float> labels(Feed& feed) { return next_batch(feed)[1]; }

TEST(DataFeed, GivesBatchesInKeyOrderAndGoesOnBehindTheEnd) {
  const TestFolder folder;
  write_numbers(folder / "db", 10);
  const auto feed = open(data_layer(folder / "db", 4));
  EXPECT_EQ(feed->shapes(), (Shapes{{4, 1, 1, 1}, {4}}));
  for (int batch = 0; batch < 8; ++batch) {
    EXPECT_EQ(feed->position(), 4u * batch);
    const auto tops = next_batch(*feed);
    for (int i = 0; i < 4; ++i) {
      const int record = (4 * batch + i) % 10;
      EXPECT_EQ(tops[0][i], record);
      EXPECT_EQ(tops[1][i], record);
      EXPECT_EQ(feed->keys()[i], record_key(record));
    }
  }
}

TEST(DataFeed, ABatchMayHoldTheDatabaseSeveralTimes) {
  const TestFolder folder;
  write_numbers(folder / "db", 3);
  const auto feed = open(data_layer(folder / "db", 8));
  EXPECT_EQ(labels(*feed), (std::vector<float>{0, 1, 2, 0, 1, 2, 0, 1}));
  EXPECT_EQ(labels(*feed), (std::vector<float>{2, 0, 1, 2, 0, 1, 2, 0}));
}

TEST(DataFeed, WorksWithoutALabelTopAndWithoutLabels) {
  const TestFolder folder;
  Datum datum;
  datum.set_channels(1);
  datum.set_height(1);
  datum.set_width(2);
  datum.set_data("\x05\x06");
  write_database(folder / "db", {{"a", datum.SerializeAsString()}});
  LayerParameter layer = data_layer(folder / "db", 2);
  EXPECT_EQ(next_batch(*open(layer)), (std::vector<std::vector<float>>{{5, 6, 5, 6}, {0, 0}}));
  layer.mutable_top()->RemoveLast();
  const auto feed = open(layer);
  EXPECT_EQ(feed->shapes(), (Shapes{{2, 1, 1, 2}}));
  EXPECT_EQ(next_batch(*feed), (std::vector<std::vector<float>>{{5, 6, 5, 6}}));
}

TEST(DataFeed, LeavesOutATopThatIsNotWanted) {
  const TestFolder folder;
  write_numbers(folder / "db", 3);
  const auto feed = open(data_layer(folder / "db", 2));
  std::vector<float> label(2);
  float* const tops[] = {nullptr, label.data()};
  feed->next(tops);
  EXPECT_EQ(label, (std::vector<float>{0, 1}));
}

TEST(DataFeed, ReadsFloats) {
  const TestFolder folder;
  Datum datum;
  datum.set_channels(2);
  datum.set_height(1);
  datum.set_width(1);
  datum.add_float_data(-0.5f);
  datum.add_float_data(1e6f);
  write_database(folder / "db", {{"a", datum.SerializeAsString()}});
  EXPECT_EQ(next_batch(*open(data_layer(folder / "db", 1)))[0], (std::vector<float>{-0.5f, 1e6f}));
}

// Size fields of an encoded record are often 0, or wrong: only the picture counts.
TEST(DataFeed, TakesTheSizeOfAnEncodedRecordFromItsPicture) {
  const TestFolder folder;
  const std::string png = encode(ramp_picture(5, 4, 3), ".png");
  write_database(folder / "db", {{"a", write_datum({0, 0, 0, 1, true}, png)},
                                 {"b", write_datum({1, 99, 7, 2, true}, png)}});
  const auto feed = open(data_layer(folder / "db", 2, "", "crop_size: 3"));
  EXPECT_EQ(feed->shapes()[0], (Shape{2, 3, 3, 3}));
  const auto tops = next_batch(*feed);
  // Centre crop: row 1, column 0; blue of pixel (1, 0) is element 12 of the ramp.
  EXPECT_EQ(tops[0][0], 3 * 12);
  EXPECT_EQ(tops[0][9], 3 * 13);
  EXPECT_EQ(tops[1], (std::vector<float>{1, 2}));
}

TEST(DataFeed, ForcesColourAndGray) {
  const TestFolder folder;
  write_database(folder / "db",
                 {{"a", write_datum({0, 0, 0, 0, true}, encode(ramp_picture(4, 4, 1), ".png"))}});
  EXPECT_EQ(open(data_layer(folder / "db", 1))->shapes()[0], (Shape{1, 1, 4, 4}));
  EXPECT_EQ(open(data_layer(folder / "db", 1, "", "force_color: true"))->shapes()[0],
            (Shape{1, 3, 4, 4}));
  EXPECT_EQ(open(data_layer(folder / "db", 1, "force_encoded_color: true"))->shapes()[0],
            (Shape{1, 3, 4, 4}));
  EXPECT_EQ(open(data_layer(folder / "db", 1, "", "force_gray: true"))->shapes()[0],
            (Shape{1, 1, 4, 4}));
}

TEST(DataFeed, TakesOldTransformFieldsWhereNewOnesAreMissing) {
  const TestFolder folder;
  write_database(folder / "db", {{"a", ramp_datum(1, 3, 3, 0)}});
  const auto values = [&](const std::string& old, const std::string& transform) {
    return next_batch(*open(data_layer(folder / "db", 1, old, transform)))[0];
  };
  EXPECT_EQ(values("crop_size: 1 scale: 2", ""), std::vector<float>{8});
  EXPECT_EQ(values("crop_size: 1 scale: 2", "scale: 3"), std::vector<float>{12});
  EXPECT_EQ(values("crop_size: 3", "crop_size: 1"), std::vector<float>{4});
}

struct BadRecord {
  const char* name;
  std::string value;
  const char* message;
};

TEST(DataFeed, StopsAtABadRecordWithItsKey) {
  const std::string png = encode(ramp_picture(16, 16, 3), ".png");
  const std::string jpg = encode(ramp_picture(64, 64, 3), ".jpg");
  const std::string good = write_datum({0, 0, 0, 1, true}, png);
  const BadRecord rows[] = {
      {"cut_png", write_datum({0, 0, 0, 1, true}, png.substr(0, png.size() / 2)), "broken"},
      {"cut_jpeg", write_datum({0, 0, 0, 1, true}, jpg.substr(0, jpg.size() * 6 / 10)),
       "JPEG ends early"},
      {"no_picture", write_datum({0, 0, 0, 1, true}, "no picture at all"), "not a picture"},
      {"empty_picture", write_datum({0, 0, 0, 1, true}, ""), "no bytes"},
      {"text", "some text", "not a Datum"},
      {"nothing", "", "holds no picture"},
      {"too_few_values", write_datum({3, 16, 16, 1, false}, "abc"), "holds 3 values"},
      {"negative", write_datum({3, -16, -16, 1, false}, std::string(768, 'x')), "holds no picture"},
      {"other_size", ramp_datum(3, 16, 17, 1), "3 x 16 x 17"},
      {"annotated", "\x0a\x02\x08\x01", "AnnotatedDatum"},
  };
  for (const BadRecord& row : rows) {
    SCOPED_TRACE(row.name);
    const TestFolder folder;
    std::vector<TestRecord> records;
    for (int i = 0; i < 9; ++i) records.push_back({record_key(i, "x.png"), good});
    records.push_back({record_key(9, "bad.png"), row.value});
    write_database(folder / "db", records);
    const auto feed = open(data_layer(folder / "db", 3));
    for (int batch = 0; batch < 3; ++batch) next_batch(*feed);
    const std::string error = error_of([&] { next_batch(*feed); });
    EXPECT_HAS(error, (folder / "db") + ": record \"00000009_bad.png\": ");
    EXPECT_HAS(error, row.message);
    EXPECT_EQ(feed->position(), 9u);
  }
}

TEST(DataFeed, RefusesABadFirstRecordAtSetUp) {
  const TestFolder folder;
  write_database(folder / "db", {{"k", "some text"}});
  EXPECT_HAS(error_of([&] { open(data_layer(folder / "db", 1)); }), "record \"k\"");
  EXPECT_HAS(error_of([&] { open(data_layer(folder / "db", 0)); }), "batch_size must be positive");
  EXPECT_HAS(error_of([&] { open(data_layer(folder / "none", 1)); }), folder / "none");
}

std::vector<std::vector<float>> run(const LayerParameter& layer, int threads, uint64_t seed,
                                    int batches) {
  const LoaderOptions options{.phase = TRAIN, .key = seed, .transform = layer.transform_param()};
  PrefetchFeed feed(
      make_database_loader(layer.data_param(), options),
      {.batch_size = static_cast<int>(layer.data_param().batch_size()), .threads = threads});
  std::vector<std::vector<float>> all;
  for (int i = 0; i < batches; ++i) {
    for (auto& top : next_batch(feed)) all.push_back(top);
  }
  return all;
}

TEST(DataFeed, GivesTheSameBytesForAnyNumberOfThreads) {
  const TestFolder folder;
  std::vector<TestRecord> records;
  for (int i = 0; i < 37; ++i) records.push_back({record_key(i), ramp_datum(3, 12, 11, i, 5 * i)});
  write_database(folder / "db", records);
  const LayerParameter layer = data_layer(folder / "db", 7, "shuffle: true",
                                          "crop_size: 8 mirror: true mean_value: 3 scale: 0.1");
  const auto one = run(layer, 1, 11, 20);
  EXPECT_EQ(one, run(layer, 2, 11, 20));
  EXPECT_EQ(one, run(layer, 7, 11, 20));
  EXPECT_NE(one, run(layer, 2, 12, 20));
}

TEST(DataFeed, GoesOnExactlyAfterASeek) {
  const TestFolder folder;
  std::vector<TestRecord> records;
  for (int i = 0; i < 23; ++i) records.push_back({record_key(i), ramp_datum(1, 6, 6, i, i)});
  write_database(folder / "db", records);
  for (const char* shuffle : {"", "shuffle: true"}) {
    const LayerParameter layer = data_layer(folder / "db", 5, shuffle, "crop_size: 4 mirror: true");
    const auto whole = open(layer, TRAIN), later = open(layer, TRAIN);
    for (int i = 0; i < 7; ++i) next_batch(*whole);
    next_batch(*later);
    later->seek(35);
    EXPECT_EQ(later->position(), 35u);
    for (int i = 0; i < 6; ++i)
      EXPECT_EQ(next_batch(*whole), next_batch(*later)) << shuffle << " batch " << i;
    EXPECT_EQ(whole->keys(), later->keys());
    later->seek(0);
    EXPECT_EQ(next_batch(*later), next_batch(*open(layer, TRAIN)));
  }
}

TEST(DataFeed, ShufflesEachEpochWithEveryRecordOnce) {
  const TestFolder folder;
  write_numbers(folder / "db", 30);
  const auto feed = open(data_layer(folder / "db", 30, "shuffle: true"), TRAIN);
  std::vector<std::vector<float>> epochs{labels(*feed), labels(*feed)};
  EXPECT_NE(epochs[0], epochs[1]);
  for (std::vector<float> epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    for (int i = 0; i < 30; ++i) EXPECT_EQ(epoch[i], i);
  }
  EXPECT_EQ(labels(*open(data_layer(folder / "db", 30, "shuffle: true"), TRAIN)), epochs[0]);
  EXPECT_NE(labels(*open(data_layer(folder / "db", 30, "shuffle: true"), TRAIN, 2)), epochs[0]);
}

TEST(DataFeed, SharesRecordsOutAmongRanks) {
  const TestFolder folder;
  write_numbers(folder / "db", 5);
  EXPECT_EQ(labels(*open(data_layer(folder / "db", 4), TRAIN, 1, 1, 2)),
            (std::vector<float>{1, 3, 0, 2}));
}

TEST(DataFeed, EndsAtOnceWhateverItsThreadsDo) {
  const TestFolder folder;
  write_numbers(folder / "db", 5);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) {
    const auto feed = open(data_layer(folder / "db", 64));
    if (i % 2) next_batch(*feed);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(DataFeed, LogsWhenItStartsAgain) {
  const TestFolder folder;
  write_numbers(folder / "db", 4);
  ::testing::internal::CaptureStderr();
  {
    const auto feed = open(data_layer(folder / "db", 4, "prefetch: 1"));
    for (int i = 0; i < 3; ++i) next_batch(*feed);
  }
  EXPECT_HAS(::testing::internal::GetCapturedStderr(), "Restarting data prefetching from start.");
}

}  // namespace
}  // namespace crema::testing
