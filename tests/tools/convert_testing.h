// Runs the built converters and looks into the databases they made.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <memory>

#include "feed/database.h"
#include "feed/feed_testing.h"

namespace crema::testing {

struct ToolResult {
  int status = -1;     // exit status; 128 + signal where it was killed
  std::string output;  // stdout and stderr
};

/// A shell command line; programs of the build are found by name.
inline ToolResult run_shell(const std::string& command) {
  const std::string line = str("PATH=", CREMA_BIN_DIR, ":$PATH; export PATH; (", command, ") 2>&1");
  FILE* pipe = ::popen(line.c_str(), "r");
  ToolResult result;
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    result.output.append(buffer, n);
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

struct StoredRecord {
  std::string key, data;
  int channels, height, width, label;
  bool is_encoded;
  friend bool operator==(const StoredRecord&, const StoredRecord&) = default;
};

inline std::vector<StoredRecord> records_of(const std::string& path) {
  const auto database = open_database(path);
  std::vector<StoredRecord> records;
  for (uint64_t i = 0; i < database->size(); ++i) {
    const Record record = database->next();
    DatumView d;
    parse_datum(record.value, d);
    records.push_back({std::string(record.key), std::string(d.data), d.channels, d.height, d.width,
                       d.label, d.is_encoded});
  }
  return records;
}

inline std::vector<std::string> keys_of(const std::vector<StoredRecord>& records) {
  std::vector<std::string> keys;
  for (const StoredRecord& record : records) keys.push_back(record.key);
  return keys;
}

/// Names in a folder, sorted.
inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline void write_picture_file(const std::string& path, const Picture& picture) {
  write_text_file(path, encode(picture, path.substr(path.rfind('.'))));
}

}  // namespace crema::testing
