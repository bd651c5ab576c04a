// A new database of records, written beside its place and moved there when it is whole.
#pragma once

#include <memory>
#include <string>

namespace crema {

class DatabaseWriter {
 public:
  /// Removes all that was written, unless finish() was reached.
  virtual ~DatabaseWriter() = default;
  /// Keeps the record; every so often what was kept is written.
  virtual void put(std::string key, std::string value) = 0;
  /// Where further files of the database may be written before finish().
  virtual const std::string& folder() const = 0;
  /// Flushes to disk and moves the folder to its place. Throws Error; then nothing is left behind.
  virtual void finish() = 0;
};

/// Throws Error unless kind is "lmdb", or "leveldb" in a build with LevelDB.
void check_database_kind(const std::string& kind);

/// Makes the folder path.tmp.PID. Throws Error for another kind, and when path exists or cannot be
/// written.
std::unique_ptr<DatabaseWriter> make_database_writer(const std::string& kind,
                                                     const std::string& path);

}  // namespace crema
