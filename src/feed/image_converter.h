// Picture files into a database, decoded by several threads and stored in list order.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "feed/database_writer.h"
#include "feed/list_file.h"

namespace crema {

struct ConvertOptions {
  std::string root;  // put in front of each path as it is
  bool gray = false;
  int resize_height = 0, resize_width = 0;  // 0: as it is
  bool reduced_decode = false;  // JPEGs at 1/2, 1/4 or 1/8 where that is no less than the new size
  bool check_size = false;      // pictures of differing sizes are an error
  bool encoded = false;         // store files, not pixels
  std::string encode_type;  // "png", "jpg", ...: not empty means encoded; empty: as the file's own
                            // name says
  bool strict = false;      // what would be skipped is an error
  int threads = 1;
  uint64_t seed = 0;
  bool shuffle = false;
  std::function<void(size_t done)> progress;  // after each picture; may be empty
  std::function<bool()> is_stopped;           // asked before each picture; may be empty
};

struct ConvertReport {
  size_t total = 0, stored = 0;
  size_t cut = 0;                         // JPEGs that end early, stored as far as they go
  std::map<std::string, size_t> skipped;  // how many for each reason
};

/// Stores the entries in writer, which is left unfinished. Bad files are named in the log. A file
/// is kept byte for byte where encoded asks for its own format and no resize. Throws Error when
/// stopped, for check_size and strict, and when nothing could be stored.
ConvertReport convert_images(std::vector<ListEntry> entries, const ConvertOptions& options,
                             DatabaseWriter& writer);

}  // namespace crema
