// BVLC: asks for a map of 1 TB and for a lock file. A reader needs neither: the map is the file,
// and a database that is read for training is not written meanwhile.
#include "feed/lmdb_reader.h"

#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"

namespace crema {
namespace {

uint64_t file_size(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) fail(path, ": ", errno_text());
  return static_cast<uint64_t>(info.st_size);
}

void check(int code, const std::string& path) {
  require(code == 0, path, ": not a readable LMDB: ", mdb_strerror(code));
}

std::string_view view(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

}  // namespace

LmdbReader::LmdbReader(const std::string& path) : path_(path) {
  try {
    open();
  } catch (...) {
    close();
    throw;
  }
}

void LmdbReader::open() {
  const uint64_t bytes = file_size(path_ + "/data.mdb");
  require(bytes > 0, path_, ": data.mdb is empty");
  check(mdb_env_create(&env_), path_);
  check(mdb_env_set_mapsize(env_, bytes), path_);
  check(mdb_env_open(env_, path_.c_str(), MDB_RDONLY | MDB_NOTLS | MDB_NOLOCK, 0644), path_);
  require_whole_file();
  check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn_), path_);
  MDB_dbi dbi = 0;
  check(mdb_dbi_open(txn_, nullptr, 0, &dbi), path_);
  MDB_stat stat{};
  check(mdb_stat(txn_, dbi, &stat), path_);
  size_ = stat.ms_entries;
  require(size_ > 0, path_, ": the database holds no records");
  check(mdb_cursor_open(txn_, dbi, &cursor_), path_);
}

// Reading behind the end of a mapped file ends a program with SIGBUS, so a short file is refused
// here.
void LmdbReader::require_whole_file() {
  MDB_envinfo info{};
  MDB_stat stat{};
  check(mdb_env_info(env_, &info), path_);
  check(mdb_env_stat(env_, &stat), path_);
  const uint64_t need = (static_cast<uint64_t>(info.me_last_pgno) + 1) * stat.ms_psize;
  const uint64_t have = file_size(path_ + "/data.mdb");
  require(have >= need, path_, ": data.mdb is cut short: ", have, " bytes of ", need);
}

LmdbReader::~LmdbReader() { close(); }

void LmdbReader::close() {
  if (cursor_) mdb_cursor_close(cursor_);
  if (txn_) mdb_txn_abort(txn_);
  if (env_) mdb_env_close(env_);
}

Record LmdbReader::step(MDB_cursor_op op) {
  MDB_val key{}, value{};
  check(mdb_cursor_get(cursor_, &key, &value, op), path_);
  return {view(key), view(value)};
}

void LmdbReader::seek(uint64_t index) {
  if (index < cursor_at_) cursor_at_ = 0;
  while (cursor_at_ < index) next();
}

Record LmdbReader::next() {
  const Record record = step(cursor_at_ == 0 ? MDB_FIRST : MDB_NEXT);
  cursor_at_ = (cursor_at_ + 1) % size_;
  return record;
}

Record LmdbReader::at(uint64_t index) {
  if (positions_.empty()) {
    positions_.reserve(size_);
    for (uint64_t i = 0; i < size_; ++i) {
      const Record r = step(i == 0 ? MDB_FIRST : MDB_NEXT);
      positions_.push_back({r.key.data(), r.value.data(), static_cast<uint32_t>(r.key.size()),
                            static_cast<uint32_t>(r.value.size())});
    }
    cursor_at_ = 0;
  }
  const Position& p = positions_.at(index);
  return {{p.key, p.key_size}, {p.value, p.value_size}};
}

}  // namespace crema
