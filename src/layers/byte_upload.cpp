// Two slots: while the net works on one batch, which was read out of its slot, the other is filled.
// The host waits for copies before the feed may fill their source again.
#include "layers/byte_upload.h"

#include <glog/logging.h>

#include <algorithm>

#include "base/trace.h"
#include "ops/kernels/byte_pictures.h"

namespace crema {
namespace {

size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

std::unique_ptr<ByteUpload> ByteUpload::make(Ops& ops, Feed& feed) {
  std::optional<ByteFormat> format = feed.byte_format();
  if (!format || ops.shares_host_memory()) return nullptr;
  std::unique_ptr<SideQueue> side = ops.side_queue();
  if (side == nullptr) return nullptr;
  feed.hand_over_bytes([&ops](size_t bytes) { return ops.allocate(bytes, Memory::pinned_host); });
  return std::unique_ptr<ByteUpload>(new ByteUpload(std::move(side), feed, std::move(*format)));
}

ByteUpload::ByteUpload(std::unique_ptr<SideQueue> side, Feed& feed, ByteFormat format)
    : side_(std::move(side)), feed_(feed), format_(std::move(format)) {
  const int64_t batch = feed.shapes()[0][0];
  pixel_bytes_ = static_cast<size_t>(batch * format_.record.count());
  record_bytes_ = static_cast<size_t>(batch) * sizeof(ByteRecord);
  mean_bytes_ = format_.mean.size() * sizeof(float);
}

size_t ByteUpload::slot_begin(int slot) const {
  const size_t bytes = aligned(record_bytes_) + aligned(pixel_bytes_);
  return aligned(mean_bytes_) + static_cast<size_t>(slot) * bytes;
}

size_t ByteUpload::state_bytes() const { return slot_begin(2); }

Tensor ByteUpload::part(size_t begin, size_t bytes) const {
  return {static_cast<uint8_t*>(state_.data) + begin,
          {Shape{static_cast<int64_t>(bytes)}, DType::u8, Layout::nchw}};
}

void ByteUpload::copy(const ByteBatch& batch) {
  side_->follow();  // the slot may still be read
  side_->upload(batch.records, part(slot_begin(slot_), record_bytes_));
  side_->upload(batch.pixels, part(slot_begin(slot_) + aligned(record_bytes_), pixel_bytes_));
}

void ByteUpload::forward(Ops& ops, Tensors top) {
  if (!has_mean_) ops.upload(format_.mean.data(), part(0, mean_bytes_));
  has_mean_ = true;
  side_->synchronize();
  const ByteBatch batch = feed_.next_bytes();
  if (top.size() > 1) ops.upload(batch.labels, top[1]);
  if (batch.pixels == nullptr) {
    take_floats(ops, batch, top[0]);
  } else {
    const bool is_on_its_way = early_ && early_->position == batch.position;
    if (!is_on_its_way) copy(batch);
    side_->join();
    make_pictures(ops, top[0]);
    slot_ = 1 - slot_;
  }
  early_ = feed_.peek_bytes();
  if (early_) copy(*early_);
}

void ByteUpload::make_pictures(Ops& ops, const Tensor& top) const {
  const Shape& record = format_.record;
  const int64_t count = record.count(), h = record[1], w = record[2];
  const auto* records = static_cast<const ByteRecord*>(part(slot_begin(slot_), 0).data);
  const auto* pixels =
      static_cast<const uint8_t*>(part(slot_begin(slot_) + aligned(record_bytes_), 0).data);
  PicturesFromBytes kernel{.bytes = pixels,
                           .records = records,
                           .mean = static_cast<const float*>(state_.data),
                           .y = top.f32(),
                           .scale = format_.scale,
                           .count = Divider(count),
                           .channels = Divider(record[0]),
                           .height = Divider(h),
                           .width = Divider(w),
                           .from = {.channel = h * w, .row = w, .column = 1},
                           .of_mean = {.channel = 1, .row = 0, .column = 0},
                           .is_nhwc = top.desc.layout == Layout::nhwc};
  if (format_.is_interleaved)
    kernel.from = {.channel = 1, .row = w * record[0], .column = record[0]};
  if (format_.mean_width > 0) {
    kernel.of_mean = {format_.mean_height * format_.mean_width, format_.mean_width, 1};
  }
  const int64_t batch = top.shape()[0], at_once = std::max<int64_t>(1, INT32_MAX / count);
  for (int64_t n = 0; n < batch; n += at_once) {
    kernel.bytes = pixels + n * count;
    kernel.records = records + n;
    kernel.y = top.f32() + n * count;
    run(ops, kernel, std::min(at_once, batch - n) * count);
  }
}

void ByteUpload::take_floats(Ops& ops, const ByteBatch& batch, const Tensor& top) {
  if (floats_ == nullptr) {
    LOG(INFO) << "Some pictures are floats, not bytes: their batches take " << top.desc.bytes()
              << " bytes more";
    floats_ = ops.allocate(top.desc.bytes(), Memory::device);
  }
  const Tensor plain{floats_.get(), {top.desc.shape, DType::f32, Layout::nchw}};
  ops.upload(batch.floats, plain);
  ops.convert(plain, top);
}

}  // namespace crema
