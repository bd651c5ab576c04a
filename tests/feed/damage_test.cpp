// Damaged records, databases, pictures and lists: each is read, or refused with one line that names
// it.
#include "feed/database.h"
#include "feed/datum_pixels.h"
#include "feed/idx_file.h"
#include "feed/list_file.h"
#include "feed_testing.h"
#include "io/mutations.h"

namespace crema::testing {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_refusals(const std::string& bytes, int count, int at_least, const std::string& place,
                     const std::function<void(const std::string&)>& read) {
  std::string wrong;
  EXPECT_GE(count_refused(bytes, count, place, read, &wrong), at_least);
  EXPECT_EQ(wrong, "");
}

/// Every record, in order and by number. Touches every byte.
void walk(const std::string& path) {
  const auto database = open_database(path);
  size_t sum = 0;
  const auto count = [&](const Record& record) {
    for (char c : record.key) sum += static_cast<unsigned char>(c);
    for (char c : record.value) sum += static_cast<unsigned char>(c);
  };
  for (uint64_t i = 0; i < database->size(); ++i) count(database->next());
  for (uint64_t i = 0; i < database->size(); ++i) count(database->at(i));
}

TEST(Damage, Databases) {
  const TestFolder folder;
  std::vector<TestRecord> records;
  for (int i = 0; i < 400; ++i) {  // some in pages of their own, the rest in leaves of two levels
    records.push_back({record_key(i, "some/picture.png"), std::string(i % 40 ? 30 : 9000, 'x')});
  }
  write_database(folder / "db", records);
  const std::string bytes = content_of(folder / "db/data.mdb");
  walk(folder / "db");
  expect_refusals(bytes, 1600, 400, folder / "db", [&](const std::string& damaged_bytes) {
    std::ofstream(folder / "db/data.mdb", std::ios::binary) << damaged_bytes;
    walk(folder / "db");
  });
}

/// The numbers of a page's header and of its first nodes, each set to extremes.
TEST(Damage, EveryNumberOfADatabasesPages) {
  const TestFolder folder;
  std::vector<TestRecord> records;
  for (int i = 0; i < 200; ++i) records.push_back({record_key(i), std::string(i ? 40 : 9000, 'x')});
  write_database(folder / "db", records);
  const std::string bytes = content_of(folder / "db/data.mdb");
  int refused = 0;
  for (size_t page = 0; page < bytes.size(); page += 4096) {
    for (size_t at = page; at < page + 160; at += 2) {
      for (const char* value : {"\x00", "\xff", "\x7f"}) {
        std::string changed = bytes;
        changed.replace(at, 2, std::string(2, *value));
        std::ofstream(folder / "db/data.mdb", std::ios::binary) << changed;
        refused += !error_of([&] { walk(folder / "db"); }).empty();
      }
    }
  }
  EXPECT_GT(refused, 500);
}

TEST(Damage, Records) {
  DatumView view;
  Picture scratch;
  const auto read = [&](const std::string& record) {
    parse_datum(record, view);
    const Pixels pixels = pixels_of_datum(view, ColorMode::as_stored, scratch);
    float sum = 0;
    for (int64_t i = 0; i < int64_t{1} * pixels.channels * pixels.height * pixels.width; ++i) {
      sum += pixels.bytes ? pixels.bytes[i] : pixels.floats[i];
    }
    EXPECT_EQ(sum, sum);
  };
  expect_refusals(ramp_datum(3, 4, 5, 7), 800, 300, "", read);
  const std::string png = encode(ramp_picture(6, 5, 3), ".png");
  expect_refusals(write_datum({3, 6, 5, 1, true}, png), 400, 100, "", read);
}

TEST(Damage, RecordsWhoseSizesAreNonsense) {
  DatumView view;
  Picture scratch;
  for (const int big : {-1, 0, 65536, INT32_MAX, INT32_MIN}) {
    for (int field = 0; field < 3; ++field) {
      DatumFields fields{1, 1, 1, 0, false};
      (field == 0 ? fields.channels : field == 1 ? fields.height : fields.width) = big;
      const std::string record = write_datum(fields, "x");
      EXPECT_NE(error_of([&] {
                  parse_datum(record, view);
                  pixels_of_datum(view, ColorMode::as_stored, scratch);
                }),
                "")
          << big << " in field " << field;
    }
  }
  const std::string record = write_datum({65536, 65536, 65536, 0, false}, "x");
  parse_datum(record, view);
  EXPECT_HAS(error_of([&] { pixels_of_datum(view, ColorMode::as_stored, scratch); }), "65536");
}

TEST(Damage, Pictures) {
  Picture picture;
  const auto read = [&](const std::string& bytes) { decode(bytes, ColorMode::color, picture); };
  expect_refusals(encode(ramp_picture(9, 7, 3), ".png"), 400, 100, "", read);
  expect_refusals(encode(ramp_picture(9, 7, 3), ".jpg"), 400, 100, "", read);
  expect_refusals(encode(ramp_picture(9, 7, 3), ".bmp"), 200, 20, "", read);
}

TEST(Damage, ListsAndIdxFiles) {
  const TestFolder folder;
  const std::string path = folder / "file";
  const auto written = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  };
  expect_refusals("a.png 1\nsub/b c.png 12\nd.jpg 0\n", 400, 100, path,
                  [&](const std::string& bytes) { read_list(written(bytes)); });
  const std::string idx(
      "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02"
      "abcdefgh",
      24);
  expect_refusals(idx, 400, 200, path,
                  [&](const std::string& bytes) { read_idx_images(written(bytes)); });
  const std::string labels("\0\0\x08\x01\0\0\0\x02\x01\x02", 10);
  expect_refusals(labels, 400, 200, path,
                  [&](const std::string& bytes) { read_idx_labels(written(bytes)); });
}

TEST(Damage, BinaryFilesAreNoLists) {
  const TestFolder folder;
  std::ofstream(folder / "list", std::ios::binary) << std::string("\x89PNG\0 1", 7);
  EXPECT_HAS(error_of([&] { read_list(folder / "list"); }),
             (folder / "list") + ": is binary data, a list");
}

TEST(Damage, AGzipFilesReasonNamesItOnce) {
  const TestFolder folder;
  const std::string path = folder / "images.gz";
  std::ofstream(path, std::ios::binary)
      << std::string("\x1f\x8b\x08\0\0\0\0\0\0\3", 10) << std::string(40, '\xff');
  const std::string error = error_of([&] { read_idx_images(path); });
  EXPECT_EQ(error.find(path + ": "), 0u) << error;
  EXPECT_EQ(error.find(path, 1), std::string::npos) << error;
}

TEST(Damage, SizesBeyondReason) {
  const TestFolder folder;
  write_numbers(folder / "db", 3);
  EXPECT_HAS(error_of([&] {
               make_feed(data_layer(folder / "db", 2, "prefetch: 4294967295"), FeedContext{});
             }),
             "prefetch: 4294967295 batches are too many");
  std::ofstream(folder / "list") << "a.png 1\n";
  const LayerParameter layer =
      layer_of(str("name: 'd' type: 'ImageData' top: 'x' image_data_param { source: '",
                   folder / "list", "' new_height: 2147483648 new_width: 2147483647 }"));
  EXPECT_HAS(error_of([&] { make_feed(layer, FeedContext{}); }),
             "new_height and new_width may be at most 65535");
}

}  // namespace
}  // namespace crema::testing
