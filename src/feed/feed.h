// Feed: the records of one data layer, decoded, transformed and batched ahead of time in host
// memory. Every random choice (order, crop, mirror) is a function of (seed, layer name, record
// number), so the batches are the same bytes for any number of threads, and seek() resumes exactly.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/shape.h"
#include "crema.pb.h"
#include "feed/byte_batch.h"

namespace crema {

/// Who reads: the seed is the run's, rank and ranks share the records out (rank r of S gets records
/// r, r + S, ...).
struct FeedContext {
  Phase phase = TEST;
  uint64_t seed = 0;
  std::string layer_name;
  int rank = 0;
  int ranks = 1;
};

class Feed {
 public:
  virtual ~Feed() = default;

  /// Shape of each top; known from construction, costs nothing, starts no thread.
  virtual Shapes shapes() const = 0;

  /// Copies the next batch into the tops' host memory (floats in the order of shapes()); a nullptr
  /// top is not wanted. Waits for the batch if need be; after the last record the first follows.
  /// Throws Error with the name of the record that cannot be used.
  virtual void next(std::span<float* const> tops) = 0;

  /// How pictures may be handed over as bytes; nothing where they cannot.
  virtual std::optional<ByteFormat> byte_format() const { return std::nullopt; }
  /// From now on next_bytes() and not next() is called; only where there is a byte_format().
  virtual void hand_over_bytes(const Allocate&) {}
  /// As next(), but tells where the batch lies; it stays there until the next call of next_bytes()
  /// or seek().
  virtual ByteBatch next_bytes() { return {}; }
  /// What next_bytes() will give, where that is ready and was not changed by an Error. It stays
  /// there as long.
  virtual std::optional<ByteBatch> peek_bytes() { return std::nullopt; }

  /// Names (database keys, file names) of the records of the batch that next() or next_bytes() gave
  /// last, in batch order.
  virtual const std::vector<std::string>& keys() const = 0;

  /// Records of one pass over the source, over all ranks; 0 where there is no such number.
  virtual uint64_t size() const { return 0; }

  /// Records handed out so far: a multiple of the batch size, or what seek() set plus that.
  virtual uint64_t position() const = 0;

  /// The next batch begins where position() was `records`; what was read ahead is dropped.
  virtual void seek(uint64_t records) = 0;
};

/// The feed of a layer of type Data, ImageData, AnnotatedData, WindowData or HDF5Data with its
/// transform. Throws Error without
/// the layer's name: missing or empty source, crop larger than the picture, mean of another shape
/// and the like.
std::unique_ptr<Feed> make_feed(const LayerParameter& layer, const FeedContext& context);

}  // namespace crema
