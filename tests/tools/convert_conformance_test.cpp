// convert_imageset and compute_image_mean against the reference's databases: keys, labels, pixels,
// kept bytes, mean.
#include "convert_testing.h"
#include "io/mean.h"

namespace crema::testing {
namespace {

const std::string kImages = CREMA_SOURCE_DIR "/tests/conformance/images/";

struct Case {
  const char* name;
  const char* flags;
  const char* list;
};

TEST(ConvertConformance, DatabasesEqualTheReference) {
  const Case cases[] = {
      {"raw", "", "list.txt"},
      {"gray", "--gray", "list.txt"},
      {"resized", "--resize_height=20 --resize_width=24", "list.txt"},
      {"encoded_png", "--encoded --encode_type=png", "list.txt"},
      {"encoded_keep", "--encoded", "list.txt"},
      {"mixed_resized", "--resize_height=28 --resize_width=28", "list_mixed.txt"}};
  for (const Case& row : cases) {
    SCOPED_TRACE(row.name);
    const TestFolder folder;
    const ToolResult result = run_shell(str("convert_imageset ", row.flags, " ", kImages, "img/ ",
                                            kImages, row.list, " ", folder / "db"));
    ASSERT_EQ(result.status, 0) << result.output;
    const auto got = records_of(folder / "db"), want = records_of(kImages + "lmdb/" + row.name);
    ASSERT_EQ(keys_of(got), keys_of(want));
    for (size_t i = 0; i < got.size(); ++i) {
      SCOPED_TRACE(got[i].key);
      EXPECT_EQ(got[i].label, want[i].label);
      EXPECT_EQ(got[i].is_encoded, want[i].is_encoded);
      if (row.name ==
          std::string("encoded_png")) {  // another zlib may pack the same pixels otherwise
        Picture a, b;
        decode(got[i].data, ColorMode::color, a);
        decode(want[i].data, ColorMode::color, b);
        EXPECT_EQ(a, b);
      } else {
        EXPECT_TRUE(got[i].data == want[i].data);
      }
      EXPECT_GT(got[i].channels * got[i].height * got[i].width, 0);
    }
  }
}

TEST(ConvertConformance, MeanEqualsTheReference) {
  const TestFolder folder;
  const ToolResult result =
      run_shell(str("compute_image_mean ", kImages, "lmdb/raw ", folder / "mean.binaryproto"));
  ASSERT_EQ(result.status, 0) << result.output;
  const HostBlob got = read_mean(folder / "mean.binaryproto"),
                 want = read_mean(kImages + "mean_raw.binaryproto");
  EXPECT_EQ(got.shape, want.shape);
  ASSERT_EQ(got.data.size(), want.data.size());
  for (size_t i = 0; i < got.data.size(); ++i) EXPECT_NEAR(got.data[i], want.data[i], 1e-4);
}

}  // namespace
}  // namespace crema::testing
