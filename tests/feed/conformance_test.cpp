// One batch of each conformance case equals the reference's: decoding, transform, order,
// wrap-around.
#include <unistd.h>

#include "feed_testing.h"
#include "io/hdf5.h"

namespace crema::testing {
namespace {

const std::filesystem::path kCases = CREMA_SOURCE_DIR "/tests/conformance";

/// The cases name their sources relative to the images folder.
class WorkingFolder {
 public:
  explicit WorkingFolder(const std::filesystem::path& path)
      : old_(std::filesystem::current_path()) {
    std::filesystem::current_path(path);
  }
  ~WorkingFolder() { std::filesystem::current_path(old_); }

 private:
  std::filesystem::path old_;
};

TEST(FeedConformance, BatchesEqualTheReference) {
  int cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kCases / "feed")) {
    if (entry.path().extension() != ".prototxt") continue;
    SCOPED_TRACE(entry.path().stem());
    ++cases;
    const WorkingFolder folder(kCases / "images");
    const LayerParameter layer = read_net(entry.path()).layer(0);
    const auto feed = make_feed(layer, {TEST, 1, layer.name()});
    const auto tops = next_batch(*feed);
    std::filesystem::path expected = entry.path();
    const Hdf5File file = Hdf5File::open(expected.replace_extension(".h5"));
    for (size_t t = 0; t < tops.size(); ++t) {
      const HostBlob want = file.read("outputs/" + layer.top(static_cast<int>(t)));
      EXPECT_EQ(feed->shapes()[t], want.shape);
      ASSERT_EQ(tops[t].size(), want.data.size());
      float largest = 0;
      for (float value : want.data) largest = std::max(largest, std::abs(value));
      for (size_t i = 0; i < tops[t].size(); ++i) {
        ASSERT_NEAR(tops[t][i], want.data[i], 1e-6 * largest)
            << layer.top(static_cast<int>(t)) << " at " << i;
      }
    }
  }
  EXPECT_EQ(cases, 15);
}

}  // namespace
}  // namespace crema::testing
