// Records wait in memory until their transaction is through, so a full map only means: grow it and
// write them again.
#include "feed/lmdb_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/error.h"

namespace crema {
namespace {

constexpr size_t kPendingRecords = 1000;
constexpr uint64_t kPendingBytes = uint64_t{64} << 20;
constexpr uint64_t kLargestStep = uint64_t{1} << 30;

}  // namespace

std::string record_key(uint64_t number, const std::string& path) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%08llu", static_cast<unsigned long long>(number));
  std::string key = digits;
  if (!path.empty()) key += "_" + path;
  if (key.size() > kMaxKeyBytes) key.resize(kMaxKeyBytes);
  return key;
}

LmdbWriter::LmdbWriter(const std::string& path, uint64_t initial_map)
    : folder_(path), map_(initial_map) {
  try {
    check(mdb_env_create(&env_));
    check(mdb_env_set_mapsize(env_, map_));
    // Nothing is valid before finish(), which flushes; and nobody else knows of this folder.
    check(mdb_env_open(env_, folder().c_str(), MDB_NOSYNC | MDB_NOLOCK, 0644));
  } catch (...) {
    if (env_) mdb_env_close(env_);
    throw;
  }
}

LmdbWriter::~LmdbWriter() {
  if (env_) mdb_env_close(env_);
}

void LmdbWriter::check(int code) const {
  if (code == 0) return;
  // LMDB has this code for a write that stored a part only.
  const char* hint = code == EIO ? "; is the disk full?" : "";
  fail("cannot write ", folder_.path(), ": ", mdb_strerror(code), hint);
}

void LmdbWriter::put(std::string key, std::string value) {
  pending_bytes_ += key.size() + value.size();
  pending_.emplace_back(std::move(key), std::move(value));
  if (pending_.size() >= kPendingRecords || pending_bytes_ >= kPendingBytes) write_pending();
}

void LmdbWriter::write_pending() {
  for (int code; (code = try_transaction()) != 0;) {
    if (code != MDB_MAP_FULL) check(code);
    map_ += std::min(map_, kLargestStep);
    check(mdb_env_set_mapsize(env_, map_));
  }
  pending_.clear();
  pending_bytes_ = 0;
}

int LmdbWriter::try_transaction() {
  MDB_txn* txn = nullptr;
  if (const int code = mdb_txn_begin(env_, nullptr, 0, &txn)) return code;
  MDB_dbi dbi = 0;
  int code = mdb_dbi_open(txn, nullptr, 0, &dbi);
  for (const auto& [key, value] : pending_) {
    if (code) break;
    MDB_val k{key.size(), const_cast<char*>(key.data())};
    MDB_val v{value.size(), const_cast<char*>(value.data())};
    code = mdb_put(txn, dbi, &k, &v, MDB_APPEND);
    if (code == MDB_KEYEXIST) code = mdb_put(txn, dbi, &k, &v, 0);  // not behind the last key
  }
  if (code) {
    mdb_txn_abort(txn);
    return code;
  }
  return mdb_txn_commit(txn);
}

void LmdbWriter::finish() {
  write_pending();
  check(mdb_env_sync(env_, 1));
  mdb_env_close(env_);
  env_ = nullptr;
  folder_.keep();
}

}  // namespace crema
