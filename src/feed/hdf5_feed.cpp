// BVLC: loads whole files, and shuffles with a generator that no seed reaches. Here a file is a
// sequence of blocks, and one that fits into a block is read once.
#include "feed/hdf5_feed.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/philox.h"
#include "feed/record_order.h"

namespace crema {
namespace {

// A block is what a shuffle mixes, so it is larger there.
constexpr int64_t kBlockBytes = int64_t{64} << 20;
constexpr int64_t kShuffledBlockBytes = int64_t{512} << 20;

std::vector<uint32_t> order_of(uint64_t size, bool shuffle, uint64_t key) {
  RecordOrder order({.size = size, .shuffle = shuffle, .key = key});
  if (shuffle) return order.permutation(0);
  std::vector<uint32_t> plain(size);
  std::iota(plain.begin(), plain.end(), 0u);
  return plain;
}

}  // namespace

Hdf5Feed::Hdf5Feed(const LayerParameter& layer, const FeedContext& context)
    : param_(layer.hdf5_data_param()),
      names_(layer.top().begin(), layer.top().end()),
      batch_size_(static_cast<int>(param_.batch_size())),
      key_(mix_key(context.seed, hash_name(context.layer_name.c_str()))),
      rank_(context.rank),
      ranks_(context.ranks) {
  require(!layer.has_transform_param(), "HDF5Data does not take a transform_param");
  require(param_.has_source(), "hdf5_data_param: source is missing");
  require(batch_size_ > 0, "hdf5_data_param: batch_size must be positive");
  if (rank_ == 0) LOG(INFO) << "Loading list of HDF5 filenames from: " << param_.source();
  std::istringstream list(read_file(param_.source()));
  for (std::string path; list >> path;) {
    try {
      add_file(path);
    } catch (const Error& error) {
      throw error.at(param_.source());
    }
  }
  require(!files_.empty(), param_.source(), ": names no HDF5 file");
  if (rank_ == 0) LOG(INFO) << "Number of HDF5 files: " << files_.size();
  values_.resize(names_.size());
  keys_.resize(static_cast<size_t>(batch_size_));
}

void Hdf5Feed::add_file(const std::string& path) {
  const Hdf5File file = Hdf5File::open(path);
  int64_t rows = 0;
  Shapes row_shapes;
  for (const std::string& name : names_) {
    if (!file.has(name)) {
      const std::vector<std::string> present = file.datasets();
      fail(path, ": there is no data set \"", name, "\"", did_you_mean(name, present),
           "; it holds: ", join(present));
    }
    require(file.is_numeric(name), path, ": data set \"", name, "\" does not hold numbers");
    const Shape shape = file.shape(name);
    require(shape.axes() > 0 && shape[0] > 0, path, ": data set \"", name, "\" has no rows");
    if (row_shapes.empty()) rows = shape[0];
    require(shape[0] == rows, path, ": data set \"", name, "\" has ", shape[0], " rows, but \"",
            names_[0], "\" has ", rows);
    row_shapes.push_back(shape.slice(1, shape.axes()));
  }
  for (size_t i = 0; i < row_shapes_.size(); ++i) {
    require(row_shapes[i] == row_shapes_[i], path, ": rows of data set \"", names_[i],
            "\" have shape ", row_shapes[i], ", but ", row_shapes_[i], " in ", files_[0]);
  }
  row_shapes_ = row_shapes;
  files_.push_back(path);
  add_blocks(files_.size() - 1, rows);
}

void Hdf5Feed::add_blocks(size_t file, int64_t rows) {
  int64_t row_bytes = 0;
  for (const Shape& shape : row_shapes_) {
    row_bytes += shape.count() * static_cast<int64_t>(sizeof(float));
  }
  const int64_t limit = param_.shuffle() ? kShuffledBlockBytes : kBlockBytes;
  const int64_t step = std::max<int64_t>(1, limit / std::max<int64_t>(1, row_bytes));
  for (int64_t first = 0; first < rows; first += step) {
    blocks_.push_back({file, first, std::min(step, rows - first)});
  }
  row_count_ += static_cast<uint64_t>(rows);
}

Shapes Hdf5Feed::shapes() const {
  Shapes tops;
  for (const Shape& row : row_shapes_) {
    Shape top{batch_size_};
    for (int64_t dim : row) top.push_back(dim);
    tops.push_back(top);
  }
  return tops;
}

void Hdf5Feed::begin_epoch(uint64_t epoch) {
  epoch_ = epoch;
  block_order_ = order_of(blocks_.size(), param_.shuffle(), mix_key(key_, epoch));
  ends_.clear();
  uint64_t end = 0;
  for (const uint32_t block : block_order_) {
    end += static_cast<uint64_t>(blocks_[block].rows);
    ends_.push_back(end);
  }
}

void Hdf5Feed::load(const Block& block) {
  const auto index = static_cast<size_t>(&block - blocks_.data());
  if (index != loaded_) {
    const Hdf5File file = Hdf5File::open(files_[block.file]);
    loaded_ = SIZE_MAX;
    for (size_t t = 0; t < names_.size(); ++t) {
      values_[t].resize(static_cast<size_t>(block.rows * row_shapes_[t].count()));
      file.read_rows(names_[t], block.first, block.rows, values_[t].data());
    }
    loaded_ = index;
    row_order_of_ = UINT64_MAX;
  }
  if (param_.shuffle() && row_order_of_ != epoch_) {
    const uint64_t key = mix_key(mix_key(key_, epoch_), index + 1);
    row_order_ = order_of(static_cast<uint64_t>(block.rows), true, key);
    row_order_of_ = epoch_;
  }
}

void Hdf5Feed::read_record(uint64_t place, int item, std::span<float* const> tops) {
  if (place / row_count_ != epoch_) begin_epoch(place / row_count_);
  const uint64_t at = place % row_count_;
  const auto i =
      static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), at) - ends_.begin());
  const Block& block = blocks_[block_order_[i]];
  load(block);
  uint64_t row = at - (ends_[i] - static_cast<uint64_t>(block.rows));
  if (param_.shuffle()) row = row_order_[row];
  for (size_t t = 0; t < tops.size() && t < names_.size(); ++t) {
    const auto count = static_cast<size_t>(row_shapes_[t].count());
    if (tops[t]) {
      std::memcpy(tops[t] + item * count, values_[t].data() + row * count, count * sizeof(float));
    }
  }
  keys_[item].assign(files_[block.file]).append(" row ");
  keys_[item].append(std::to_string(static_cast<uint64_t>(block.first) + row));
}

void Hdf5Feed::next(std::span<float* const> tops) {
  for (int i = 0; i < batch_size_; ++i) read_record((position_ + i) * ranks_ + rank_, i, tops);
  position_ += batch_size_;
}

}  // namespace crema
