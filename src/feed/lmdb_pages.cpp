// The layout is that of lmdb.h and mdb.c, version 0.9: page 0 and 1 are metas, of which the newer
// counts; then a B+ tree whose leaves hold the records, values beyond a page in runs of pages.
#include "feed/lmdb_pages.h"

#include <cstring>

#include "base/error.h"

namespace crema {
namespace {

constexpr uint64_t kHeader = 16, kNodeHeader = 8;  // bytes before a page's and a node's content
constexpr uint64_t kNoPage = ~uint64_t{0};
constexpr int kMaxDepth = 32;
constexpr int kBranch = 1, kLeaf = 2, kOverflow = 4, kMeta = 8, kFixedLeaf = 0x20;  // page flags
constexpr int kBigNode = 1, kNestedNode = 2 | 4;                                    // node flags
constexpr int kSeveralValues = 4;                                                   // database flag
constexpr uint32_t kMagic = 0xBEEFC0DE, kVersion = 1;

template <class T>
T number_at(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Where numbers stand, in bytes from the start of a page.
constexpr uint64_t kNumber = 0, kFlags = 10, kLower = 12, kUpper = 14, kRun = 12;
constexpr uint64_t kMetaMagic = kHeader, kMetaVersion = kHeader + 4;
constexpr uint64_t kMetaPageSize = kHeader + 24;  // of the list of free pages, the first database
constexpr uint64_t kMain = kHeader + 72;          // the main database
constexpr uint64_t kMainFlags = kMain + 4, kMainDepth = kMain + 6, kMainEntries = kMain + 32,
                   kMainRoot = kMain + 40;
constexpr uint64_t kLastPage = kHeader + 120, kTransaction = kHeader + 128;
constexpr uint64_t kMetaEnd = kHeader + 136;

bool is_meta(const char* page) {
  return (number_at<uint16_t>(page + kFlags) & kMeta) != 0 &&
         number_at<uint32_t>(page + kMetaMagic) == kMagic;
}

}  // namespace

LmdbPages::LmdbPages(const std::string& folder) : folder_(folder), file_(folder + "/data.mdb") {
  require(!file_.bytes().empty(), folder_, ": data.mdb is empty");
  read_header();
}

void LmdbPages::read_header() {
  const std::string_view bytes = file_.bytes();
  const char* meta = bytes.data();
  require(bytes.size() >= kMetaEnd && is_meta(meta), folder_, ": not a readable LMDB");
  page_size_ = number_at<uint32_t>(meta + kMetaPageSize);
  const bool is_power = (page_size_ & (page_size_ - 1)) == 0;
  require(is_power && page_size_ >= 256 && page_size_ <= 65536, folder_,
          ": not a readable LMDB: its pages have ", page_size_, " bytes");
  require(bytes.size() >= 2 * page_size_, folder_, ": data.mdb is cut short: ", bytes.size(),
          " bytes of ", 2 * page_size_, " and more");
  const char* other = meta + page_size_;
  require(is_meta(other), folder_, ": not a readable LMDB: its second page is damaged");
  if (number_at<uint64_t>(other + kTransaction) > number_at<uint64_t>(meta + kTransaction))
    meta = other;
  const auto version = number_at<uint32_t>(meta + kMetaVersion);
  require(version == kVersion, folder_, ": not a readable LMDB: it has version ", version, ", not ",
          kVersion);
  require((number_at<uint16_t>(meta + kMainFlags) & kSeveralValues) == 0, folder_,
          ": the database keeps several values under one key, which no database of records does");
  const auto last = number_at<uint64_t>(meta + kLastPage);
  pages_ = bytes.size() / page_size_;
  require(last < pages_, folder_, ": data.mdb is cut short: ", bytes.size(), " bytes of ",
          last < kNoPage / page_size_ ? str((last + 1) * page_size_) : "an impossible number");
  size_ = number_at<uint64_t>(meta + kMainEntries);
  root_ = number_at<uint64_t>(meta + kMainRoot);
  depth_ = number_at<uint16_t>(meta + kMainDepth);
  if (root_ == kNoPage) size_ = 0;
  const bool is_possible =
      size_ <= bytes.size() / kNodeHeader && (size_ == 0 || (depth_ >= 1 && depth_ <= kMaxDepth));
  require(is_possible, folder_, ": data.mdb is damaged: it says that it holds ", size_,
          " records in ", depth_, " levels of pages");
}

void LmdbPages::fail_at(uint64_t number, const char* what) const {
  fail(folder_, ": data.mdb is damaged: page ", number, " of ", pages_, " ", what);
}

const char* LmdbPages::start_of(uint64_t number) const {
  if (number >= pages_) fail_at(number, "is not there");
  return file_.bytes().data() + number * page_size_;
}

LmdbPages::Page LmdbPages::page(uint64_t number, bool is_leaf) const {
  const char* bytes = start_of(number);
  const uint64_t lower = number_at<uint16_t>(bytes + kLower),
                 upper = number_at<uint16_t>(bytes + kUpper);
  const int kind =
      number_at<uint16_t>(bytes + kFlags) & (kBranch | kLeaf | kOverflow | kMeta | kFixedLeaf);
  if (number_at<uint64_t>(bytes + kNumber) != number || kind != (is_leaf ? kLeaf : kBranch)) {
    fail_at(number, "is not the one that belongs there");
  }
  const bool is_sound = lower > kHeader && lower <= upper && upper <= page_size_;
  if (!is_sound) fail_at(number, "holds nothing readable");
  return {bytes, static_cast<int>((lower - kHeader) / 2), is_leaf};
}

LmdbPages::Node LmdbPages::node(const Page& page, int index) const {
  const uint64_t at = number_at<uint16_t>(page.bytes + kHeader + 2 * index);
  const auto number = number_at<uint64_t>(page.bytes + kNumber);
  if (at + kNodeHeader > page_size_) fail_at(number, "holds a record outside of itself");
  const char* start = page.bytes + at;
  const uint64_t low = number_at<uint16_t>(start), high = number_at<uint16_t>(start + 2);
  const uint64_t flags = number_at<uint16_t>(start + 4), key_size = number_at<uint16_t>(start + 6);
  const uint64_t room = page_size_ - at - kNodeHeader;
  Node node{{}, low | high << 16 | flags << 32};
  if (key_size > room) fail_at(number, "holds a key that is longer than itself");
  if (!page.is_leaf) return node;
  if ((flags & kNestedNode) != 0) fail_at(number, "holds another database");
  const uint64_t size = low | high << 16;
  const bool is_big = (flags & kBigNode) != 0;
  const uint64_t in_place = is_big ? sizeof(uint64_t) : size;
  if (in_place > room - key_size) fail_at(number, "holds a value that is longer than itself");
  const char* key = start + kNodeHeader;
  node.place = {key, key + key_size, static_cast<uint32_t>(key_size), static_cast<uint32_t>(size),
                is_big};
  return node;
}

Record LmdbPages::read(const LmdbPlace& place) const {
  const std::string_view value = place.is_big
                                     ? big_value(number_at<uint64_t>(place.stored), place.size)
                                     : std::string_view(place.stored, place.size);
  return {{place.key, place.key_size}, value};
}

std::string_view LmdbPages::big_value(uint64_t number, uint64_t size) const {
  const char* bytes = start_of(number);
  const uint64_t run = number_at<uint32_t>(bytes + kRun);
  const bool is_run = (number_at<uint16_t>(bytes + kFlags) & kOverflow) != 0 &&
                      number_at<uint64_t>(bytes + kNumber) == number && run > 0 &&
                      run <= pages_ - number;
  if (!is_run || size > run * page_size_ - kHeader)
    fail_at(number, "is not the value it should be");
  return {bytes + kHeader, size};
}

void LmdbCursor::go_down(uint64_t number) {
  for (;;) {
    const bool is_leaf = static_cast<int>(levels_.size()) + 1 == pages_.depth_;
    levels_.push_back({pages_.page(number, is_leaf), 0});
    if (is_leaf) return;
    number = pages_.node(levels_.back().page, 0).child;
  }
}

void LmdbCursor::go_on() {
  levels_.pop_back();
  while (!levels_.empty()) {
    Level& level = levels_.back();
    if (++level.at < level.page.count) return go_down(pages_.node(level.page, level.at).child);
    levels_.pop_back();
  }
  fail(pages_.folder(), ": data.mdb is damaged: it ends before its ", pages_.size(), " records");
}

LmdbPlace LmdbCursor::next() {
  if (levels_.empty()) go_down(pages_.root_);
  if (levels_.back().at == levels_.back().page.count) go_on();
  Level& leaf = levels_.back();
  return pages_.node(leaf.page, leaf.at++).place;
}

}  // namespace crema
