// A folder of a test's own: tests run side by side, so none may write a file that another knows.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace crema {

/// A new, empty folder below the system's folder for temporary files, removed with all in it when
/// it goes out of scope.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "crema_test_XXXXXX").string();
    require(::mkdtemp(pattern.data()) != nullptr, pattern, ": ", errno_text());
    path_ = pattern;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file in the folder.
  void write(const std::string& name, const std::string& content) const {
    write_file(*this / name, content);
  }
  bool has(const std::string& name) const { return exists(*this / name); }
  /// Names of all files, sorted.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::string path_;
};

}  // namespace crema
