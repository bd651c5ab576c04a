// compute_image_mean: exact sums, encoded records, and the record that does not fit named.
#include "convert_testing.h"
#include "io/mean.h"

namespace crema::testing {
namespace {

ToolResult mean_of(const TestFolder& folder, const std::vector<TestRecord>& records,
                   const std::string& more = "") {
  write_database(folder / "db", records);
  return run_shell(str("cd ", folder.path(), " && compute_image_mean ", more, " db mean"));
}

TEST(ImageMean, AveragesRawEncodedAndFloatRecords) {
  const TestFolder folder;
  Datum floats;
  floats.set_channels(3);
  floats.set_height(1);
  floats.set_width(2);
  for (int i = 0; i < 6; ++i) floats.add_float_data(static_cast<float>(100 + i));
  const std::string png = encode({1, 2, 3, {1, 2, 3, 4, 5, 6}}, ".png");  // planes 1 4, 2 5, 3 6
  const ToolResult result = mean_of(folder,
                                    {{"a", write_datum({3, 1, 2, 0, false}, "\1\2\3\4\5\6")},
                                     {"b", write_datum({0, 0, 0, 0, true}, png)},
                                     {"c", floats.SerializeAsString()}},
                                    "--backend=lmdb");
  ASSERT_EQ(result.status, 0) << result.output;
  const HostBlob mean = read_mean(folder / "mean");
  EXPECT_EQ(mean.shape, (Shape{1, 3, 1, 2}));
  const float want[] = {102 / 3.f, 107 / 3.f, 107 / 3.f, 112 / 3.f, 112 / 3.f, 117 / 3.f};
  for (int i = 0; i < 6; ++i) EXPECT_FLOAT_EQ(mean.data[i], want[i]);
  EXPECT_HAS(result.output, "] Processed 3 files.");
  EXPECT_HAS(result.output, "] mean_value channel [0]: 34.8333");
  EXPECT_HAS(result.output, "] mean_value channel [2]: 38.1667");
}

// 30,000 records of 255 and one of 0 more: float sums would be off in the sixth digit.
TEST(ImageMean, SumsManyRecordsExactly) {
  const TestFolder folder;
  std::vector<TestRecord> records;
  for (int i = 0; i < 70001; ++i) {
    records.push_back(
        {record_key(i), write_datum({1, 1, 1, 0, false}, i ? "\xff" : std::string(1, '\0'))});
  }
  ASSERT_EQ(mean_of(folder, records, "--threads=3").status, 0);
  EXPECT_EQ(read_mean(folder / "mean").data[0], static_cast<float>(70000.0 * 255 / 70001));
}

TEST(ImageMean, NamesTheRecordThatDoesNotFit) {
  struct Row {
    std::string value;
    const char* message;
  };
  const Row rows[] = {
      {ramp_datum(3, 2, 3, 0), "3 x 2 x 3"}, {"text", "not a Datum"}, {"", "no picture"}};
  for (const Row& row : rows) {
    const TestFolder folder;
    const ToolResult result =
        mean_of(folder, {{"a", ramp_datum(3, 2, 2, 0)}, {"bad one", row.value}});
    EXPECT_EQ(result.status, 1);
    EXPECT_HAS(result.output, "record \"bad one\": ");
    EXPECT_HAS(result.output, row.message);
    EXPECT_FALSE(std::filesystem::exists(folder / "mean"));
  }
}

TEST(ImageMean, RefusesBadArguments) {
  const TestFolder folder;
  EXPECT_HAS(run_shell("compute_image_mean").output, "DB [OUT.binaryproto]");
  EXPECT_EQ(run_shell("compute_image_mean").status, 1);
  EXPECT_HAS(run_shell("compute_image_mean /no/such/db").output,
             "/no/such/db: there is no such database");
  write_numbers(folder / "db", 1);
  EXPECT_HAS(run_shell(str("compute_image_mean ", folder / "db", " /no/such/mean")).output,
             "cannot write /no/such/mean: No such file");
}

}  // namespace
}  // namespace crema::testing
