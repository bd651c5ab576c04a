// Item i of the workers is chunk i % chunks_per_batch of batch i / chunks_per_batch after start_.
// All storage is taken at the first next(), and threads wait without using the processor while the
// ring is full.
#include "feed/prefetch_feed.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/error.h"
#include "base/trace.h"

namespace crema {
namespace {

// Small enough to share a batch among threads, large enough that the queue's lock does not count
// for tiny records.
constexpr int kLargestChunk = 16;

}  // namespace

PrefetchFeed::PrefetchFeed(std::unique_ptr<RecordLoader> loader, const Options& options)
    : loader_(std::move(loader)), options_(options) {
  require(options_.batch_size > 0, "batch_size must be positive");
  options_.prefetch = std::max(1, options_.prefetch);
  options_.threads = std::max(1, options_.threads);
  chunk_size_ = std::clamp(options_.batch_size / (2 * options_.threads), 1, kLargestChunk);
  chunks_per_batch_ = (options_.batch_size + chunk_size_ - 1) / chunk_size_;
  for (const Shape& shape : loader_->record_shapes()) counts_.push_back(shape.count());
}

Shapes PrefetchFeed::shapes() const {
  Shapes tops;
  for (const Shape& record : loader_->record_shapes()) {
    Shape top{options_.batch_size};
    for (int64_t dim : record) top.push_back(dim);
    tops.push_back(top);
  }
  return tops;
}

void PrefetchFeed::make_ring() {
  const size_t batch_size = static_cast<size_t>(options_.batch_size);
  ring_.resize(static_cast<size_t>(options_.prefetch));
  for (Batch& batch : ring_) {
    batch.keys.resize(batch_size);
    batch.tops.resize(counts_.size());
    for (size_t t = allocate_ ? 1 : 0; t < counts_.size(); ++t) {
      batch.tops[t].resize(batch_size * static_cast<size_t>(counts_[t]));
    }
    if (!allocate_ || batch.memory) continue;
    const size_t record_bytes = batch_size * sizeof(ByteRecord);
    batch.memory = allocate_(record_bytes + batch_size * static_cast<size_t>(counts_[0]));
    batch.records = static_cast<ByteRecord*>(batch.memory.get());
    batch.pixels = static_cast<uint8_t*>(batch.memory.get()) + record_bytes;
    batch.has_bytes.resize(batch_size);
  }
  keys_.resize(batch_size);
  tickets_.resize(ring_.size() * batch_size);
}

void PrefetchFeed::start() {
  try {
    make_ring();
  } catch (const std::bad_alloc&) {
    fail("there is no memory for ", options_.prefetch, " batches of ", options_.batch_size,
         " records: a smaller batch_size or prefetch is needed");
  }
  scratch_.resize(static_cast<size_t>(options_.threads));
  start_ = position_;
  OrderedWorkers::Job job;
  job.name = "feed worker";
  job.draw = [this](uint64_t item) { draw(item); };
  job.work = [this](uint64_t item, int worker) { work(item, worker); };
  job.window = static_cast<uint64_t>(options_.prefetch) * chunks_per_batch_;
  job.threads = static_cast<int>(std::min<uint64_t>(options_.threads, job.window));
  workers_ = std::make_unique<OrderedWorkers>(std::move(job));
}

PrefetchFeed::Chunk PrefetchFeed::chunk(uint64_t item) {
  const uint64_t batch = item / chunks_per_batch_, slot = batch % ring_.size();
  const int from = static_cast<int>(item % chunks_per_batch_) * chunk_size_;
  const int to = std::min(from + chunk_size_, options_.batch_size);
  return {&ring_[slot], from, to, &tickets_[slot * options_.batch_size + from],
          start_ + batch * options_.batch_size + from};
}

void PrefetchFeed::draw(uint64_t item) {
  const TraceSpan span("feed", "read");
  const Chunk c = chunk(item);
  for (int i = 0; i < c.to - c.from; ++i) {
    c.tickets[i].position = c.position + i;
    loader_->draw(c.tickets[i]);
  }
}

void PrefetchFeed::work(uint64_t item, int worker) {
  const Chunk c = chunk(item);
  float* values[kMaxTops];
  for (int i = c.from; i < c.to; ++i) {
    const Ticket& ticket = c.tickets[i - c.from];
    c.batch->keys[i].assign(ticket.record.key);
    if (allocate_) {
      load_bytes(c, i, worker);
      continue;
    }
    for (size_t t = 0; t < counts_.size(); ++t)
      values[t] = c.batch->tops[t].data() + i * counts_[t];
    loader_->load(ticket, scratch_[worker], values);
  }
}

void PrefetchFeed::load_bytes(const Chunk& c, int i, int worker) {
  BytePlace place{c.batch->pixels + i * counts_[0], c.batch->records + i, nullptr};
  if (counts_.size() > 1) place.labels = c.batch->tops[1].data() + i * counts_[1];
  c.batch->has_bytes[i] = loader_->load_bytes(c.tickets[i - c.from], scratch_[worker], place);
}

PrefetchFeed::Batch& PrefetchFeed::wait_for_next() {
  if (!workers_) start();
  const uint64_t index = next_index();
  bool has_waited = false;
  for (int i = 0; i < chunks_per_batch_; ++i) {
    const TraceSpan span("feed", "wait for data");
    has_waited |= workers_->wait(index * chunks_per_batch_ + i);
  }
  LOG_IF_EVERY_N(INFO, has_waited, 1000) << "Waiting for data";
  return ring_[index % ring_.size()];
}

void PrefetchFeed::next(std::span<float* const> tops) {
  Batch& batch = wait_for_next();
  const uint64_t index = next_index();
  const TraceSpan span("feed", "hand over");
  for (size_t t = 0; t < tops.size() && t < batch.tops.size(); ++t) {
    if (tops[t]) std::memcpy(tops[t], batch.tops[t].data(), batch.tops[t].size() * sizeof(float));
  }
  keys_.swap(batch.keys);
  workers_->release_below((index + 1) * chunks_per_batch_);
  position_ += options_.batch_size;
}

void PrefetchFeed::hand_over_bytes(const Allocate& allocate) {
  workers_.reset();
  ring_.clear();
  allocate_ = allocate;
  ++options_.prefetch;  // the one that was handed over last keeps its place
}

ByteBatch PrefetchFeed::next_bytes() {
  if (workers_) workers_->release_below(next_index() * chunks_per_batch_);
  Batch& batch = wait_for_next();
  const uint64_t index = next_index();
  const ByteBatch out = bytes_of(batch, index);
  keys_.swap(batch.keys);
  position_ += options_.batch_size;
  return out;
}

std::optional<ByteBatch> PrefetchFeed::peek_bytes() {
  // The one before it keeps its place in the ring.
  if (!workers_ || ring_.size() < 2) return std::nullopt;
  const uint64_t index = next_index();
  for (int i = 0; i < chunks_per_batch_; ++i) {
    if (!workers_->is_ready(index * chunks_per_batch_ + i)) return std::nullopt;
  }
  Batch& batch = ring_[index % ring_.size()];
  const bool has_all = std::count(batch.has_bytes.begin(), batch.has_bytes.end(), 0) == 0;
  return has_all ? std::optional(bytes_of(batch, index)) : std::nullopt;
}

ByteBatch PrefetchFeed::bytes_of(Batch& batch, uint64_t index) {
  ByteBatch out{.position = start_ + index * options_.batch_size,
                .pixels = batch.pixels,
                .records = batch.records};
  if (counts_.size() > 1) out.labels = batch.tops[1].data();
  if (std::count(batch.has_bytes.begin(), batch.has_bytes.end(), 0) == 0) return out;
  load_floats(index);
  out.pixels = nullptr;
  out.floats = floats_.data();
  return out;
}

/// Rare enough that one thread may do it while the others go on.
void PrefetchFeed::load_floats(uint64_t index) {
  floats_.resize(static_cast<size_t>(options_.batch_size) * counts_[0]);
  std::vector<float> labels(counts_.size() > 1 ? static_cast<size_t>(counts_[1]) : 0);
  const uint64_t slot = index % ring_.size();
  for (int i = 0; i < options_.batch_size; ++i) {
    float* const values[kMaxTops] = {floats_.data() + i * counts_[0], labels.data()};
    loader_->load(tickets_[slot * options_.batch_size + i], own_scratch_, values);
  }
}

void PrefetchFeed::seek(uint64_t records) {
  workers_.reset();
  position_ = records;
}

}  // namespace crema
