// Tells a database's kind from the files in its folder, whatever `backend` says.
#include "feed/database.h"

#include <unistd.h>

#include <cstdio>

#include "base/error.h"
#include "base/file.h"
#include "feed/leveldb_files.h"
#include "feed/lmdb_reader.h"

namespace crema {
namespace {

constexpr size_t kShownBytes = 600;  // of a key in a message; the longest key of an LMDB has 511

}  // namespace

std::unique_ptr<Database> open_database(const std::string& path) {
  require(!path.empty(), "source: no database is named");
  require(exists(path), path, ": there is no such database", looked_for_from(path));
  require(is_directory(path), path,
          ": is a file; a database is a folder (an LMDB with data.mdb in it)");
  if (::access(path.c_str(), X_OK) != 0) fail(path, ": ", errno_text());
  if (exists(path + "/data.mdb")) return std::make_unique<LmdbReader>(path);
  if (exists(path + "/CURRENT")) return open_leveldb(path);
  fail(path, ": is not a database: the folder holds no data.mdb (LMDB) and no CURRENT (LevelDB)");
}

std::string printable(std::string_view key) {
  if (key.size() > kShownBytes) return printable(key.substr(0, kShownBytes)) + "...";
  std::string text;
  for (const unsigned char c : key) {
    if (c >= 0x20 && c != 0x7f) {
      text += static_cast<char>(c);
      continue;
    }
    char code[8];
    std::snprintf(code, sizeof code, "\\x%02x", c);
    text += code;
  }
  return text;
}

}  // namespace crema
