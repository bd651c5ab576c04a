// Labels from folders: ROOT/CLASS/.../picture, one class for each folder of ROOT.
#pragma once

#include <string>
#include <vector>

#include "feed/list_file.h"

namespace crema {

struct FolderLabels {
  std::vector<std::string> classes;  // sorted; the place is the label
  std::vector<ListEntry> entries;    // paths below ROOT, sorted by class, then path
  size_t ignored = 0;                // files without a picture's extension
};

/// Sub-folders of a class belong to it; hidden files and folders are passed over. Throws Error when
/// root cannot be read or holds no class with a picture.
FolderLabels labels_from_folders(const std::string& root);

}  // namespace crema
