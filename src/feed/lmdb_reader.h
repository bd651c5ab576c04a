// LMDB for reading: one read transaction without locks, as long as the reader lives.
#pragma once

#include <lmdb.h>

#include <vector>

#include "feed/database.h"

namespace crema {

class LmdbReader : public Database {
 public:
  /// path: the folder with data.mdb. It must not be written meanwhile. Throws Error.
  explicit LmdbReader(const std::string& path);
  ~LmdbReader() override;

  uint64_t size() const override { return size_; }
  void seek(uint64_t index) override;
  Record next() override;
  Record at(uint64_t index) override;

 private:
  struct Position {
    const char* key;
    const char* value;
    uint32_t key_size, value_size;
  };
  void open();
  void close();
  void require_whole_file();
  Record step(MDB_cursor_op op);

  std::string path_;
  MDB_env* env_ = nullptr;
  MDB_txn* txn_ = nullptr;
  MDB_cursor* cursor_ = nullptr;
  uint64_t size_ = 0;
  uint64_t cursor_at_ = 0;  // the record that next() will give
  std::vector<Position> positions_;
};

}  // namespace crema
