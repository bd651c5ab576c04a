// A folder without pictures is a class all the same, so that labels do not shift when it is filled
// later.
#include "feed/folder_labels.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "base/error.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().front() == '.'; }

bool has_picture_extension(const fs::path& path) {
  static constexpr std::array kExtensions = {".jpg", ".jpeg", ".jpe",  ".png", ".bmp", ".dib",
                                             ".tif", ".tiff", ".webp", ".jp2", ".pbm", ".pgm",
                                             ".ppm", ".pnm",  ".ras",  ".sr",  ".exr", ".hdr"};
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

/// Paths below folder, each with prefix in front.
void collect(const fs::path& folder, const std::string& prefix, std::vector<std::string>& paths,
             size_t& ignored) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (is_hidden(entry.path())) continue;
    const std::string path = prefix + entry.path().filename().string();
    if (entry.is_directory()) {
      collect(entry.path(), path + "/", paths, ignored);
    } else if (has_picture_extension(entry.path())) {
      paths.push_back(path);
    } else {
      ++ignored;
    }
  }
}

}  // namespace

FolderLabels labels_from_folders(const std::string& root) {
  FolderLabels found;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
      if (is_hidden(entry.path())) continue;
      if (entry.is_directory()) {
        found.classes.push_back(entry.path().filename().string());
      } else {
        ++found.ignored;
      }
    }
    std::sort(found.classes.begin(), found.classes.end());
    for (size_t label = 0; label < found.classes.size(); ++label) {
      const std::string& name = found.classes[label];
      std::vector<std::string> paths;
      collect(fs::path(root) / name, name + "/", paths, found.ignored);
      std::sort(paths.begin(), paths.end());
      for (std::string& path : paths)
        found.entries.push_back({std::move(path), static_cast<int>(label)});
    }
  } catch (const fs::filesystem_error& error) {
    fail(error.path1().string(), ": ", error.code().message());
  }
  require(!found.classes.empty(), root, ": holds no folders; each class needs one");
  require(!found.entries.empty(), root, ": its ", found.classes.size(),
          " folders hold no pictures");
  return found;
}

}  // namespace crema
