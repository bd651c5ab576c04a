// The pages of an LMDB file, read without the library: it trusts every number in them, so that a
// damaged file ends the program there. Here each number is checked before it is used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "feed/database.h"
#include "io/wire.h"

namespace crema {

/// Where a record stands. Of a big value only its first page is known: the value itself, and with
/// it a page of the file, is touched when it is read.
struct LmdbPlace {
  const char* key;
  const char* stored;  // the value; of a big one the number of its first page
  uint32_t key_size, size;
  bool is_big;
};

/// A data.mdb of version 1 (LMDB 0.9), as 64-bit machines write it; its main database, one value
/// for each key.
class LmdbPages {
 public:
  /// Of the file in this folder. Throws Error "FOLDER: rule": no LMDB, cut short, of another kind.
  explicit LmdbPages(const std::string& folder);

  /// How many records the file says it has; 0 for an empty database.
  uint64_t size() const { return size_; }
  const std::string& folder() const { return folder_; }
  /// Throws Error where the pages of a big value are damaged.
  Record read(const LmdbPlace& place) const;

 private:
  friend class LmdbCursor;
  struct Page {
    const char* bytes;
    int count;  // of nodes
    bool is_leaf;
  };
  struct Node {
    LmdbPlace place;  // of a leaf
    uint64_t child;   // of a branch
  };

  void read_header();
  [[noreturn]] void fail_at(uint64_t number, const char* what) const;
  const char* start_of(uint64_t number) const;
  Page page(uint64_t number, bool is_leaf) const;
  Node node(const Page& page, int index) const;
  std::string_view big_value(uint64_t number, uint64_t size) const;

  std::string folder_;
  MappedFile file_;
  uint64_t page_size_ = 0, pages_ = 0, size_ = 0, root_ = 0;
  int depth_ = 0;
};

/// Walks over the records in key order.
class LmdbCursor {
 public:
  explicit LmdbCursor(const LmdbPages& pages) : pages_(pages) {}
  /// Before the first record.
  void rewind() { levels_.clear(); }
  /// Throws Error where a page is damaged or records are missing.
  LmdbPlace next();

 private:
  struct Level {
    LmdbPages::Page page;
    int at;  // the node that is read next (leaf) or that was gone into (branch)
  };
  void go_down(uint64_t number);
  void go_on();

  const LmdbPages& pages_;
  std::vector<Level> levels_;
};

}  // namespace crema
