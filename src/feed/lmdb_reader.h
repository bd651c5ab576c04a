// LMDB for reading: the file as memory, no locks, no lock file.
#pragma once

#include <vector>

#include "feed/database.h"
#include "feed/lmdb_pages.h"

namespace crema {

class LmdbReader : public Database {
 public:
  /// path: the folder with data.mdb. It must not be written meanwhile. Throws Error.
  explicit LmdbReader(const std::string& path);

  const char* kind() const override { return "lmdb"; }
  uint64_t size() const override { return pages_.size(); }
  void seek(uint64_t index) override;
  Record next() override;
  Record at(uint64_t index) override;

 private:
  LmdbPages pages_;
  LmdbCursor cursor_;
  uint64_t cursor_at_ = 0;         // the record that next() will give
  std::vector<LmdbPlace> places_;  // filled by the first at()
};

}  // namespace crema
