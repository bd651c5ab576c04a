// HDF5Data: rows of several HDF5 files, one data set for each top.
#pragma once

#include <optional>

#include "feed/feed.h"
#include "io/hdf5.h"

namespace crema {

/// Reads blocks of rows as they are needed, so a file may be larger than memory. With `shuffle`
/// each epoch takes the blocks, and the rows within each, in a new order that is a function of
/// (seed, epoch).
class Hdf5Feed final : public Feed {
 public:
  /// Throws Error for a missing or empty file, a missing data set, row counts or shapes that
  /// differ.
  Hdf5Feed(const LayerParameter& layer, const FeedContext& context);

  Shapes shapes() const override;
  void next(std::span<float* const> tops) override;
  const std::vector<std::string>& keys() const override { return keys_; }
  uint64_t size() const override { return row_count_; }
  uint64_t position() const override { return position_; }
  void seek(uint64_t records) override { position_ = records; }

 private:
  struct Block {
    size_t file = 0;
    int64_t first = 0, rows = 0;
  };
  void add_file(const std::string& path);
  void add_blocks(size_t file, int64_t rows);
  void begin_epoch(uint64_t epoch);
  void load(const Block& block);
  void read_record(uint64_t place, int item, std::span<float* const> tops);

  HDF5DataParameter param_;
  std::vector<std::string> names_;  // of the data sets: the tops
  int batch_size_ = 0;
  uint64_t key_;
  int rank_, ranks_;
  std::vector<std::string> files_;
  Shapes row_shapes_;
  std::vector<Block> blocks_;
  uint64_t row_count_ = 0;
  uint64_t position_ = 0;
  uint64_t epoch_ = UINT64_MAX;
  std::vector<uint64_t> ends_;  // of the blocks in this epoch's order
  std::vector<uint32_t> block_order_, row_order_;
  size_t loaded_ = SIZE_MAX;            // the block in values_
  uint64_t row_order_of_ = UINT64_MAX;  // the epoch of row_order_
  std::vector<std::vector<float>> values_;
  std::vector<std::string> keys_;
};

}  // namespace crema
