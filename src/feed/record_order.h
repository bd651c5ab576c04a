// Which record is read when: a function of (seed, epoch, position), shared out among ranks.
#pragma once

#include <cstdint>
#include <vector>

namespace crema {

class RecordOrder {
 public:
  struct Options {
    uint64_t size = 1;  // records in one epoch, below 2^32
    bool shuffle = false;
    uint64_t key = 0;   // of the permutations, see base/philox.h
    uint64_t skip = 0;  // records left out at the start
    int rank = 0, ranks = 1;
  };
  explicit RecordOrder(const Options& options) : options_(options) {}

  /// The place in the endless sequence over all ranks.
  uint64_t global(uint64_t position) const {
    return options_.skip + position * options_.ranks + options_.rank;
  }
  uint64_t epoch(uint64_t position) const { return global(position) / options_.size; }
  /// The record at this position, below size. Cheap within an epoch; the first call in another
  /// epoch makes its order.
  uint64_t at(uint64_t position);
  /// The epoch's permutation: entry i is the record read at place i.
  std::vector<uint32_t> permutation(uint64_t epoch) const;

 private:
  void shuffle(uint64_t epoch, std::vector<uint32_t>& order) const;

  Options options_;
  uint64_t shuffled_epoch_ = UINT64_MAX;
  std::vector<uint32_t> order_;
};

}  // namespace crema
