// The pipeline of Data and ImageData: several threads read, decode and transform ahead of time into
// a ring of batches.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feed/database.h"
#include "feed/datum.h"
#include "feed/feed.h"
#include "feed/ordered_workers.h"
#include "io/image.h"

namespace crema {

/// One record on its way: its position in the feed, and what its loader found for it.
struct Ticket {
  uint64_t position = 0;
  uint64_t index = 0;
  Record record;  // key: its name, valid as long as the loader
};

/// Storage of one thread that is reused from record to record.
struct Scratch {
  DatumView datum;
  Picture picture;
};

/// Picture and label.
constexpr size_t kMaxTops = 2;

/// Where the records of a PrefetchFeed come from.
class RecordLoader {
 public:
  virtual ~RecordLoader() = default;
  /// Shapes of one record's values, one for each of at most kMaxTops tops, without batch axis.
  virtual const Shapes& record_shapes() const = 0;
  /// Records of one epoch over all ranks; 0 where there is no such number.
  virtual uint64_t size() const { return 0; }
  /// Finds the record at ticket.position. One thread at a time, positions in order but for a seek.
  virtual void draw(Ticket& ticket) = 0;
  /// Decodes and transforms into values, one pointer for each top. Many threads at once.
  virtual void load(const Ticket& ticket, Scratch& scratch, float* const* values) const = 0;
  /// How load_bytes() gives pictures; nothing where they must be transformed here.
  virtual std::optional<ByteFormat> byte_format() const { return std::nullopt; }
  /// As load(), but into place; false where this picture has no bytes: then only load() has it.
  virtual bool load_bytes(const Ticket&, Scratch&, const BytePlace&) const { return false; }
};

class PrefetchFeed final : public Feed {
 public:
  struct Options {
    int batch_size = 1;
    int prefetch = 4;  // batches made ahead
    int threads = hardware_threads();
  };
  PrefetchFeed(std::unique_ptr<RecordLoader> loader, const Options& options);

  Shapes shapes() const override;
  void next(std::span<float* const> tops) override;
  const std::vector<std::string>& keys() const override { return keys_; }
  uint64_t size() const override { return loader_->size(); }
  uint64_t position() const override { return position_; }
  void seek(uint64_t records) override;
  std::optional<ByteFormat> byte_format() const override { return loader_->byte_format(); }
  void hand_over_bytes(const Allocate& allocate) override;
  ByteBatch next_bytes() override;
  std::optional<ByteBatch> peek_bytes() override;

 private:
  struct Batch {
    std::vector<std::vector<float>> tops;  // the pictures' is empty where bytes are handed over
    std::vector<std::string> keys;
    Buffer memory;  // of the two that follow
    uint8_t* pixels = nullptr;
    ByteRecord* records = nullptr;
    std::vector<uint8_t> has_bytes;  // by record
  };
  struct Chunk {  // consecutive records of one batch: what one thread does at a time
    Batch* batch;
    int from, to;
    Ticket* tickets;
    uint64_t position;  // of record `from`
  };
  void make_ring();
  void start();
  Chunk chunk(uint64_t item);
  void draw(uint64_t item);
  void work(uint64_t item, int worker);
  void load_bytes(const Chunk& c, int i, int worker);
  uint64_t next_index() const { return (position_ - start_) / options_.batch_size; }
  Batch& wait_for_next();
  ByteBatch bytes_of(Batch& batch, uint64_t index);
  void load_floats(uint64_t index);

  std::unique_ptr<RecordLoader> loader_;
  Options options_;
  int chunk_size_ = 1, chunks_per_batch_ = 1;
  std::vector<int64_t> counts_;  // values of one record, for each top
  uint64_t position_ = 0;
  uint64_t start_ = 0;  // position of item 0
  std::vector<std::string> keys_;
  Allocate allocate_;          // given where bytes are handed over
  std::vector<float> floats_;  // of a batch in which some picture has no bytes
  Scratch own_scratch_;
  std::vector<Batch> ring_;
  std::vector<Ticket> tickets_;
  std::vector<Scratch> scratch_;
  std::unique_ptr<OrderedWorkers> workers_;  // last: its threads use all of the above
};

}  // namespace crema
