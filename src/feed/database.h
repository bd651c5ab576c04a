// A database of records, read in the byte order of its keys or by record number.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace crema {

/// Views into the database, valid as long as it is open; the value's memory is `owner` where there
/// is one.
struct Record {
  std::string_view key, value;
  std::shared_ptr<const std::string> owner{};
};

class Database {
 public:
  virtual ~Database() = default;
  /// "lmdb" or "leveldb".
  virtual const char* kind() const = 0;
  /// Number of records, at least 1.
  virtual uint64_t size() const = 0;
  /// The next next() gives record `index` (below size()) in key order.
  virtual void seek(uint64_t index) = 0;
  /// One record after the other; record 0 follows the last one. One thread at a time.
  virtual Record next() = 0;
  /// Record `index` in key order. The first call may walk over all keys once, and keeps 24 bytes
  /// for each (a LevelDB its keys, from its opening). One thread at a time.
  virtual Record at(uint64_t index) = 0;
};

/// Opens a database folder for reading, its kind told from its files. An LMDB needs no lock file
/// and no more address space than the data; of a LevelDB see leveldb_files.h. Throws Error naming
/// the path: nothing there, a file, no database, of another kind, cut short, without records.
std::unique_ptr<Database> open_database(const std::string& path);

/// "00000001_a.png" with unprintable bytes as \xNN, cut after 600 bytes: a key for messages.
std::string printable(std::string_view key);

}  // namespace crema
