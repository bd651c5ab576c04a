// The window file of R-CNN (Girshick et al. 2014): pictures, and windows on them with a class and
// how much of an object they cover.
#pragma once

#include <string>
#include <vector>

namespace crema {

/// Corners are pixels, all within the picture.
struct PictureWindow {
  int picture = 0, label = 0;
  float overlap = 0;
  int left = 0, top = 0, right = 0, bottom = 0;
};

struct WindowFile {
  struct Entry {
    std::string path;
    int channels = 0, height = 0, width = 0;
  };
  std::vector<Entry> pictures;
  std::vector<PictureWindow> windows;
};

/// Reads, for each picture, "# NUMBER", its path on a line of its own, channels, height, width, the
/// number of windows, and for each of them class, overlap, left, top, right, bottom (inclusive,
/// from 0). The pictures' numbers themselves are not used. Throws Error "PATH:LINE: ..." for what
/// is not there or no number, for windows beyond their picture, and where no picture is named.
WindowFile read_windows(const std::string& path);

}  // namespace crema
