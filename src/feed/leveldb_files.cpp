// LevelDB knows neither the number of its records nor a record's number: both come from one walk
// over the keys.
#include "feed/leveldb_files.h"

#include "base/error.h"

#ifdef CREMA_HAS_LEVELDB

#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <vector>

#include "feed/new_folder.h"

namespace crema {
namespace {

constexpr int kOpenTables = 100;
constexpr size_t kPendingBytes = size_t{1} << 20;
constexpr size_t kWriteBuffer = size_t{64} << 20, kBlock = size_t{64} << 10;

void check(const leveldb::Status& status, const char* what, const std::string& path) {
  if (status.ok()) return;
  const std::string text = status.ToString();
  const bool is_limit = text.find("Too many open files") != std::string::npos;
  const bool is_locked = text.find("lock ") != std::string::npos;
  fail("cannot ", what, " the LevelDB ", path, ": ", text,
       is_limit ? "; a higher limit of open files is needed (ulimit -n)" : "",
       is_locked ? "; another process has it open: one at a time can read a LevelDB" : "");
}

/// One process may open a LevelDB once, but several layers may read it.
std::shared_ptr<leveldb::DB> open_shared(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<leveldb::DB>> open;
  const std::scoped_lock lock(mutex);
  std::weak_ptr<leveldb::DB>& known = open[std::filesystem::canonical(path).string()];
  if (auto shared = known.lock()) return shared;
  leveldb::Options options;
  options.max_open_files = kOpenTables;
  leveldb::DB* db = nullptr;
  check(leveldb::DB::Open(options, path, &db), "open", path);
  std::shared_ptr<leveldb::DB> shared(db);
  known = shared;
  return shared;
}

class LevelDbReader final : public Database {
 public:
  explicit LevelDbReader(const std::string& path) : path_(path), db_(open_shared(path)) {
    iterator_.reset(db_->NewIterator(read_options()));
    for (iterator_->SeekToFirst(); iterator_->Valid(); iterator_->Next()) {
      keys_.append(iterator_->key().data(), iterator_->key().size());
      ends_.push_back(keys_.size());
    }
    check(iterator_->status(), "read", path_);
    require(!ends_.empty(), path_, ": the database holds no records");
  }

  const char* kind() const override { return "leveldb"; }
  uint64_t size() const override { return ends_.size(); }

  void seek(uint64_t index) override {
    if (index == at_ && is_placed_) return;
    at_ = index;
    is_placed_ = false;
  }

  Record next() override {
    if (!is_placed_) {
      const std::string_view key = key_at(at_);
      iterator_->Seek({key.data(), key.size()});
      is_placed_ = true;
    }
    check(iterator_->status(), "read", path_);
    require(iterator_->Valid() && iterator_->key() == slice(key_at(at_)), path_, ": record ", at_,
            " is no longer there");
    const Record record = owned(key_at(at_), iterator_->value().ToString());
    at_ = (at_ + 1) % size();
    if (at_ == 0) {
      is_placed_ = false;
    } else {
      iterator_->Next();
    }
    return record;
  }

  Record at(uint64_t index) override {
    std::string value;
    check(db_->Get(read_options(), slice(key_at(index)), &value), "read", path_);
    return owned(key_at(index), std::move(value));
  }

 private:
  static leveldb::ReadOptions read_options() {
    leveldb::ReadOptions options;
    options.verify_checksums = true;
    options.fill_cache = false;
    return options;
  }
  static leveldb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }

  std::string_view key_at(uint64_t index) const {
    const size_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(keys_).substr(begin, ends_.at(index) - begin);
  }

  static Record owned(std::string_view key, std::string value) {
    auto owner = std::make_shared<const std::string>(std::move(value));
    return {key, *owner, owner};
  }

  std::string path_;
  std::shared_ptr<leveldb::DB> db_;
  std::unique_ptr<leveldb::Iterator> iterator_;  // of db_: goes before it
  std::string keys_;                             // one behind another
  std::vector<size_t> ends_;
  uint64_t at_ = 0;         // the record that next() will give
  bool is_placed_ = false;  // the iterator stands there
};

class LevelDbWriter final : public DatabaseWriter {
 public:
  explicit LevelDbWriter(const std::string& path) : folder_(path) {
    leveldb::Options options;
    options.create_if_missing = true;
    options.error_if_exists = true;
    options.max_open_files = kOpenTables;
    options.write_buffer_size = kWriteBuffer;
    options.block_size = kBlock;
    leveldb::DB* db = nullptr;
    check(leveldb::DB::Open(options, folder_.temporary(), &db), "write", path);
    db_.reset(db);
  }

  void put(std::string key, std::string value) override {
    pending_bytes_ += key.size() + value.size();
    batch_.Put(key, value);
    if (pending_bytes_ >= kPendingBytes) write_pending({});
  }

  const std::string& folder() const override { return folder_.temporary(); }

  void finish() override {
    leveldb::WriteOptions options;
    options.sync = true;
    write_pending(options);
    db_.reset();
    folder_.keep();
  }

 private:
  void write_pending(const leveldb::WriteOptions& options) {
    check(db_->Write(options, &batch_), "write", folder_.path());
    batch_.Clear();
    pending_bytes_ = 0;
  }

  NewFolder folder_;
  std::unique_ptr<leveldb::DB> db_;
  leveldb::WriteBatch batch_;
  size_t pending_bytes_ = 0;
};

}  // namespace

bool has_leveldb() { return true; }

std::unique_ptr<Database> open_leveldb(const std::string& path) {
  return std::make_unique<LevelDbReader>(path);
}

std::unique_ptr<DatabaseWriter> make_leveldb_writer(const std::string& path) {
  return std::make_unique<LevelDbWriter>(path);
}

}  // namespace crema

#else

namespace crema {

bool has_leveldb() { return false; }

std::unique_ptr<Database> open_leveldb(const std::string& path) {
  fail(path, ": is a LevelDB; ", kNoLevelDb);
}

std::unique_ptr<DatabaseWriter> make_leveldb_writer(const std::string&) { fail(kNoLevelDb); }

}  // namespace crema

#endif
