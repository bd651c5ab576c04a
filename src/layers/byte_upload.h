// Pictures that a feed hands over as bytes: copied beside the device's own queue, the next batch
// while this one is worked on, and made into a blob on the device.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "feed/feed.h"
#include "ops/ops.h"

namespace crema {

class ByteUpload {
 public:
  /// nullptr where the feed has no bytes to give, or the device cannot copy beside its own work.
  /// The feed must outlive it, and gives its batches through it from now on.
  static std::unique_ptr<ByteUpload> make(Ops& ops, Feed& feed);

  /// Device memory that stays from one forward to the next.
  size_t state_bytes() const;
  void bind(const Tensor& state) { state_ = state; }
  /// The next batch: pictures in either layout, and labels where there is a second top.
  void forward(Ops& ops, Tensors top);

 private:
  ByteUpload(std::unique_ptr<SideQueue> side, Feed& feed, ByteFormat format);
  Tensor part(size_t begin, size_t bytes) const;
  size_t slot_begin(int slot) const;
  void copy(const ByteBatch& batch);
  void make_pictures(Ops& ops, const Tensor& top) const;
  void take_floats(Ops& ops, const ByteBatch& batch, const Tensor& top);

  std::unique_ptr<SideQueue> side_;
  Feed& feed_;
  ByteFormat format_;
  size_t pixel_bytes_, record_bytes_, mean_bytes_;
  Tensor state_;  // the mean, then two slots: records and pixels of a batch each
  bool has_mean_ = false;
  int slot_ = 0;                    // that the next batch lies in, or will
  std::optional<ByteBatch> early_;  // the batch that is on its way to it
  Buffer floats_;
};

}  // namespace crema
