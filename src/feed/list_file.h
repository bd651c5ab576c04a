// List files: one picture a line, its path, a blank, its label or several.
#pragma once

#include <string>
#include <vector>

namespace crema {

struct ListEntry {
  std::string path;
  int label = 0;                // the first label, truncated
  std::vector<float> labels{};  // all of them, where the list has several or other than whole ones
};

struct ListOptions {
  int label_count = 1;   // numbers at the end of each line
  bool is_whole = true;  // one label must be a whole number; several may be any
};

/// The lines in file order. A line is split at its last blanks, as many as there are labels, so
/// paths may hold blanks; a byte order mark, CRLF, a missing last newline and empty lines make no
/// difference. Throws Error naming file, line and text for every line without its labels, and for a
/// list without entries.
std::vector<ListEntry> read_list(const std::string& path, const ListOptions& options = {});

}  // namespace crema
