// Several labels for a record: in lists, in Datums, and in the tops of Data and ImageData.
#include "crema.pb.h"
#include "feed/list_file.h"
#include "feed_testing.h"

namespace crema::testing {
namespace {

using Floats = std::vector<float>;

std::vector<ListEntry> list_of(const std::string& content, const ListOptions& options) {
  const TestFolder folder;
  write_text_file(folder / "list.txt", content);
  return read_list(folder / "list.txt", options);
}

TEST(Labels, StandAtTheEndOfALine) {
  const auto entries =
      list_of("my cat 1.png 1.5 -2 3e1\r\nb 7.png 0\t+1  2 \n", {.label_count = 3});
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].path, "my cat 1.png");
  EXPECT_EQ(entries[0].labels, Floats({1.5F, -2, 30}));
  EXPECT_EQ(entries[0].label, 1);
  EXPECT_EQ(entries[1].path, "b 7.png");
  EXPECT_EQ(entries[1].labels, Floats({0, 1, 2}));
  EXPECT_EQ(list_of("a.png 0.25\n", {.is_whole = false})[0].labels, Floats({0.25F}));
  EXPECT_TRUE(list_of("a.png 3\n", {})[0].labels.empty());
}

TEST(Labels, MustBeThereInEachLine) {
  const auto error = [](const std::string& content, const ListOptions& options) {
    return error_of([&] { list_of(content, options); });
  };
  EXPECT_HAS(
      error("a.png 1 x 2\n", {.label_count = 3}),
      "list.txt:1: label \"x\" is not a number in \"a.png 1 x 2\", which needs 3 at its end");
  EXPECT_HAS(error("a.png 1\n", {.label_count = 2}),
             "list.txt:1: too few labels in \"a.png 1\", which needs 2 at its end");
  EXPECT_HAS(error("a b.png 1\n", {.label_count = 2}), "label \"b.png\" is not a number");
  EXPECT_HAS(error("a.png nan\n", {.is_whole = false}), "label \"nan\" is not a number");
  EXPECT_HAS(error("a.png 1\n", {.label_count = 0}), "at least one label is needed, not 0");
}

std::string labelled(const Floats& labels) { return write_datum({1, 1, 1, 0, false, labels}, "p"); }

TEST(Labels, OfADatumAreRead) {
  DatumView view;
  parse_datum(labelled({0.5F, -3}), view);
  EXPECT_EQ(view.labels, Floats({0.5F, -3}));
  parse_datum(labelled({}), view);
  EXPECT_TRUE(view.labels.empty());
  Datum datum;
  ASSERT_TRUE(datum.ParseFromString(labelled({2})));
  EXPECT_EQ(datum.labels(0), 2);
}

TEST(Labels, OfADatabaseGiveTheTopItsShape) {
  const TestFolder folder;
  write_database(folder / "db", {{"0", labelled({1.5F, 2})}, {"1", labelled({3, 4})}});
  const auto feed = make_feed(data_layer(folder / "db", 3), {.layer_name = "data"});
  EXPECT_EQ(feed->shapes()[1], Shape({3, 2}));
  EXPECT_EQ(next_batch(*feed)[1], Floats({1.5F, 2, 3, 4, 1.5F, 2}));
  write_database(folder / "one", {{"0", labelled({0.25F})}});
  const auto one = make_feed(data_layer(folder / "one", 2), {.layer_name = "data"});
  EXPECT_EQ(one->shapes()[1], Shape({2}));
  EXPECT_EQ(next_batch(*one)[1], Floats({0.25F, 0.25F}));
}

TEST(Labels, OfARecordMustBeAsManyAsTheFirst) {
  const TestFolder folder;
  write_database(folder / "db", {{"0", labelled({1, 2})}, {"1", labelled({3})}});
  const auto feed = make_feed(data_layer(folder / "db", 2), {.layer_name = "data"});
  EXPECT_HAS(error_of([&] { next_batch(*feed); }),
             "record \"1\": holds 1 labels of its own, the first record 2");
}

TEST(Labels, OfAListGiveTheTopItsShape) {
  const TestFolder folder;
  write_text_file(folder / "a.png", encode(ramp_picture(2, 2, 3), ".png"));
  write_text_file(folder / "list.txt", "a.png 1 0.5\n");
  const auto feed = make_feed(
      layer_of(str("name: 'd' type: 'ImageData' top: 'data' top: 'label' image_data_param { "
                   "batch_size: 2 label_count: 2 source: '",
                   folder / "list.txt", "' root_folder: '", folder.path(), "/' }")),
      {.layer_name = "d"});
  EXPECT_EQ(feed->shapes()[1], Shape({2, 2}));
  EXPECT_EQ(next_batch(*feed)[1], Floats({1, 0.5F, 1, 0.5F}));
}

}  // namespace
}  // namespace crema::testing
