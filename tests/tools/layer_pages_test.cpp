// The pages under docs/ name every layer type that is registered.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "layers/layer.h"

namespace crema {
namespace {

/// All pages about layers, one after another.
std::string layer_pages() {
  const std::filesystem::path docs = CREMA_SOURCE_DIR "/docs";
  std::string text = read_file(docs / "layers_of_forks.md");
  for (const auto& entry : std::filesystem::directory_iterator(docs / "layers")) {
    text += read_file(entry.path());
  }
  return text;
}

/// Those that no page has in back quotes.
std::vector<std::string> missing_types(const std::vector<std::string>& types,
                                       const std::string& pages) {
  std::vector<std::string> missing;
  for (const std::string& type : types) {
    if (pages.find("`" + type + "`") == std::string::npos) missing.push_back(type);
  }
  return missing;
}

TEST(LayerPages, NameEveryType) {
  EXPECT_EQ(missing_types(layer_registry().names(), layer_pages()), std::vector<std::string>());
}

TEST(LayerPages, ATypeThatIsNotThereIsFound) {
  EXPECT_EQ(missing_types({"Convolution", "NotALayer", "Conv"}, layer_pages()),
            (std::vector<std::string>{"NotALayer", "Conv"}));
}

}  // namespace
}  // namespace crema
