// A new LMDB, see database_writer.h.
#pragma once

#include <lmdb.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "feed/database_writer.h"
#include "feed/new_folder.h"

namespace crema {

/// LMDB's limit for a key, in bytes.
constexpr size_t kMaxKeyBytes = 511;

/// "00000012_sub/a.png": the record's number, so that byte order is list order, then its path;
/// without the path's end where the key would be longer than LMDB allows.
std::string record_key(uint64_t number, const std::string& path = "");

class LmdbWriter final : public DatabaseWriter {
 public:
  static constexpr uint64_t kInitialMap = uint64_t{16} << 20;

  /// The map grows as needed.
  explicit LmdbWriter(const std::string& path, uint64_t initial_map = kInitialMap);
  ~LmdbWriter() override;
  LmdbWriter(const LmdbWriter&) = delete;
  LmdbWriter& operator=(const LmdbWriter&) = delete;

  /// Records wait until there are enough for a transaction.
  void put(std::string key, std::string value) override;
  const std::string& folder() const override { return folder_.temporary(); }
  void finish() override;

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
