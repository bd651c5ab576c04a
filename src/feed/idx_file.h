// The idx files of MNIST, plain or gzip.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crema {

struct IdxImages {
  int count = 0, rows = 0, cols = 0;
  std::vector<uint8_t> pixels;  // count x rows x cols
};

/// Both throw Error "PATH: ..." for a file of another kind, one cut short, and one that cannot be
/// read.
IdxImages read_idx_images(const std::string& path);
std::vector<uint8_t> read_idx_labels(const std::string& path);

}  // namespace crema
