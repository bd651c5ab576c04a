// Which kind of database is written.
#include "feed/database_writer.h"

#include "base/error.h"
#include "feed/leveldb_files.h"
#include "feed/lmdb_writer.h"

namespace crema {

void check_database_kind(const std::string& kind) {
  require(kind == "lmdb" || kind == "leveldb", "a database is an lmdb or a leveldb, not \"", kind,
          "\"");
  require(kind == "lmdb" || has_leveldb(), kNoLevelDb);
}

std::unique_ptr<DatabaseWriter> make_database_writer(const std::string& kind,
                                                     const std::string& path) {
  check_database_kind(kind);
  if (kind == "lmdb") return std::make_unique<LmdbWriter>(path);
  return make_leveldb_writer(path);
}

}  // namespace crema
