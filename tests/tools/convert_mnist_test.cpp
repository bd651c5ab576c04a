// convert_mnist_data: idx files, plain or gzip, to a database or to pictures.
#include <zlib.h>

#include "convert_testing.h"

namespace crema::testing {
namespace {

std::string number(uint32_t n) {
  return {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8),
          static_cast<char>(n)};
}

const std::string kPixels = "abcdefghijklmnopqr";  // 3 images of 2x3
const std::string kImages = number(2051) + number(3) + number(2) + number(3) + kPixels;
const std::string kLabels = number(2049) + number(3) + std::string("\7\0\7", 3);

void write_gzip(const std::string& path, const std::string& content) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
}

TEST(ConvertMnist, ReadsPlainAndGzip) {
  const TestFolder folder;
  write_text_file(folder / "images", kImages);
  write_text_file(folder / "labels", kLabels);
  write_gzip(folder / "images.gz", kImages);
  write_gzip(folder / "labels.gz", kLabels);
  const std::vector<StoredRecord> want = {{"00000000", "abcdef", 1, 2, 3, 7, false},
                                          {"00000001", "ghijkl", 1, 2, 3, 0, false},
                                          {"00000002", "mnopqr", 1, 2, 3, 7, false}};
  for (const std::string end : {"", ".gz"}) {
    const ToolResult result = run_shell(str("cd ", folder.path(), " && convert_mnist_data images",
                                            end, " labels", end, " db", end));
    EXPECT_EQ(result.status, 0) << result.output;
    EXPECT_HAS(result.output, "] A total of 3 items.");
    EXPECT_HAS(result.output, "] Rows: 2 Cols: 3");
    EXPECT_EQ(records_of(folder / ("db" + end)), want);
  }
}

TEST(ConvertMnist, WritesPictures) {
  const TestFolder folder;
  write_text_file(folder / "images", kImages);
  write_text_file(folder / "labels", kLabels);
  const ToolResult result = run_shell(
      str("cd ", folder.path(), " && convert_mnist_data --to_images=out --count=2 images labels"));
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(names_in(folder / "out"), (std::vector<std::string>{"0", "7"}));
  EXPECT_EQ(names_in(folder / "out/7"), (std::vector<std::string>{"00000.png"}));
  EXPECT_EQ(read_picture(folder / "out/0/00001.png", ColorMode::as_stored),
            (Picture{2, 3, 1, {'g', 'h', 'i', 'j', 'k', 'l'}}));
}

TEST(ConvertMnist, MakesSiamesePairs) {
  const TestFolder folder;
  std::string images = number(2051) + number(40) + number(1) + number(2), labels;
  for (char i = 0; i < 40; ++i) {
    images += {i, static_cast<char>(i + 100)};
    labels += static_cast<char>(i % 3);
  }
  write_text_file(folder / "images", images);
  write_text_file(folder / "labels", number(2049) + number(40) + labels);
  const ToolResult result =
      run_shell(str("cd ", folder.path(), " && convert_mnist_siamese_data images labels db"));
  ASSERT_EQ(result.status, 0) << result.output;
  const std::vector<StoredRecord> records = records_of(folder / "db");
  ASSERT_EQ(records.size(), 40U);
  EXPECT_EQ(records[39].key, "00000039");
  int same = 0;
  for (const StoredRecord& record : records) {
    EXPECT_EQ(record.channels, 2);
    ASSERT_EQ(record.data.size(), 4U);
    const char a = record.data[0], b = record.data[2];
    EXPECT_EQ(record.data[1], static_cast<char>(a + 100));
    EXPECT_EQ(record.data[3], static_cast<char>(b + 100));
    EXPECT_EQ(record.label, a % 3 == b % 3);
    same += record.label;
  }
  EXPECT_GT(same, 0);
  EXPECT_LT(same, 40);
}

struct BadIdx {
  const char* name;
  std::string images, labels;
  const char* message;
};

TEST(ConvertMnist, NamesTheFileThatIsWrong) {
  const BadIdx rows[] = {
      {"swapped", kLabels, kImages, "images: is not an idx file of images"},
      {"labels", kImages, kImages, "labels: is not an idx file of labels"},
      {"text", "this is text, not numbers", kLabels, "images: is not an idx file"},
      {"empty", "", kLabels, "images: the file is cut short"},
      {"cut", kImages.substr(0, 30), kLabels, "images: the file is cut short"},
      {"count", kImages, number(2049) + number(2) + "\1\2", "labels: holds 2 labels"},
      {"zero", number(2051) + number(0) + number(2) + number(3), kLabels,
       "images: claims to hold 0"},
      {"huge", number(2051) + std::string(12, '\x7f'), kLabels, "images: claims to hold"},
  };
  for (const BadIdx& row : rows) {
    SCOPED_TRACE(row.name);
    const TestFolder folder;
    write_text_file(folder / "images", row.images);
    write_text_file(folder / "labels", row.labels);
    const ToolResult result =
        run_shell(str("cd ", folder.path(), " && convert_mnist_data images labels db"));
    EXPECT_EQ(result.status, 1);
    EXPECT_HAS(result.output, row.message);
    EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"images", "labels"}));
  }
}

TEST(ConvertMnist, RefusesMissingFilesAndTargetsThatAreThere) {
  const TestFolder folder;
  write_text_file(folder / "images", kImages);
  const std::string cd = str("cd ", folder.path(), " && ");
  EXPECT_HAS(run_shell(cd + "convert_mnist_data images none db").output, "none: No such file");
  EXPECT_HAS(run_shell(cd + "convert_mnist_data images none images").output,
             "images: is there already");
  EXPECT_HAS(run_shell(cd + "convert_mnist_data --to_images=images a b").output,
             "images: is there already");
  EXPECT_HAS(run_shell("convert_mnist_data images labels").output, "IMAGES LABELS DB");
}

}  // namespace
}  // namespace crema::testing
