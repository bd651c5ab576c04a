// A new LMDB, written beside its place and moved there when it is whole.
#pragma once

#include <lmdb.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "feed/new_folder.h"

namespace crema {

/// LMDB's limit for a key, in bytes.
constexpr size_t kMaxKeyBytes = 511;

/// "00000012_sub/a.png": the record's number, so that byte order is list order, then its path;
/// without the path's end where the key would be longer than LMDB allows.
std::string record_key(uint64_t number, const std::string& path = "");

class LmdbWriter {
 public:
  static constexpr uint64_t kInitialMap = uint64_t{16} << 20;

  /// Makes the folder path.tmp.PID. The map grows as needed. Throws Error when path exists or
  /// cannot be written.
  explicit LmdbWriter(const std::string& path, uint64_t initial_map = kInitialMap);
  /// Removes all that was written, unless finish() was reached.
  ~LmdbWriter();
  LmdbWriter(const LmdbWriter&) = delete;
  LmdbWriter& operator=(const LmdbWriter&) = delete;

  /// Keeps the record; every so often what was kept is written in one transaction.
  void put(std::string key, std::string value);
  /// Where further files of the database may be written before finish().
  const std::string& folder() const { return folder_.temporary(); }
  /// Flushes to disk and moves the folder to its place. Throws Error; then nothing is left behind.
  void finish();

 private:
  void write_pending();
  int try_transaction();
  void check(int code) const;

  NewFolder folder_;
  MDB_env* env_ = nullptr;
  uint64_t map_;
  uint64_t pending_bytes_ = 0;
  std::vector<std::pair<std::string, std::string>> pending_;
};

}  // namespace crema
