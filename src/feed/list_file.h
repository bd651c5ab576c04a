// List files: one picture a line, its path, a blank, its label.
#pragma once

#include <string>
#include <vector>

namespace crema {

struct ListEntry {
  std::string path;
  int label = 0;
};

/// The lines in file order. A line is split at its last blank, so paths may hold blanks; a byte
/// order mark, CRLF, a missing last newline and empty lines make no difference. Throws Error naming
/// file, line and text for every line without a whole number as label, and for a list without
/// entries.
std::vector<ListEntry> read_list(const std::string& path);

}  // namespace crema
