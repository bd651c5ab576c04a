// BVLC: asks for a map of 1 TB and for a lock file. A reader needs neither: the map is the file,
// and a database that is read for training is not written meanwhile.
#include "feed/lmdb_reader.h"

#include "base/error.h"

namespace crema {

LmdbReader::LmdbReader(const std::string& path) : pages_(path), cursor_(pages_) {
  require(pages_.size() > 0, path, ": the database holds no records");
}

void LmdbReader::seek(uint64_t index) {
  if (index < cursor_at_) cursor_at_ = 0;
  if (cursor_at_ == 0) cursor_.rewind();
  for (; cursor_at_ < index; ++cursor_at_) cursor_.next();
}

Record LmdbReader::next() {
  if (cursor_at_ == 0) cursor_.rewind();
  const Record record = pages_.read(cursor_.next());
  cursor_at_ = (cursor_at_ + 1) % size();
  return record;
}

Record LmdbReader::at(uint64_t index) {
  if (places_.empty()) {
    places_.reserve(size());
    cursor_.rewind();
    for (uint64_t i = 0; i < size(); ++i) places_.push_back(cursor_.next());
    cursor_.rewind();
    cursor_at_ = 0;
  }
  return pages_.read(places_.at(index));
}

}  // namespace crema
