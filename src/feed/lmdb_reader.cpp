// BVLC: asks for a map of 1 TB and for a lock file. A reader needs neither: the map is the file,
// and a database that is read for training is not written meanwhile.
#include "feed/lmdb_reader.h"

#include "base/error.h"

namespace crema {

LmdbReader::LmdbReader(const std::string& path) : pages_(path), cursor_(pages_) {
  require(pages_.size() > 0, path, ": the database holds no records");
}

void LmdbReader::seek(uint64_t index) {
  if (index < cursor_at_) {
    cursor_.rewind();
    cursor_at_ = 0;
  }
  while (cursor_at_ < index) next();
}

Record LmdbReader::next() {
  if (cursor_at_ == 0) cursor_.rewind();
  const Record record = cursor_.next();
  cursor_at_ = (cursor_at_ + 1) % size();
  return record;
}

Record LmdbReader::at(uint64_t index) {
  if (positions_.empty()) {
    positions_.reserve(size());
    cursor_.rewind();
    for (uint64_t i = 0; i < size(); ++i) {
      const Record r = cursor_.next();
      positions_.push_back({r.key.data(), r.value.data(), static_cast<uint32_t>(r.key.size()),
                            static_cast<uint32_t>(r.value.size())});
    }
    cursor_at_ = 0;
  }
  const Position& p = positions_.at(index);
  return {{p.key, p.key_size}, {p.value, p.value_size}};
}

}  // namespace crema
