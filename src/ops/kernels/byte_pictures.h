// A batch of pictures as bytes becomes a blob: subtract the mean, scale, mirror. The arithmetic is
// feed/transform_rows.h's, bit for bit.
#pragma once

#include "ops/kernel.h"

namespace crema {

/// What is left to do for one picture of a batch, once it is cropped.
class ByteRecord {
 public:
  int32_t top = 0, left = 0;  // of the crop, in a mean of whole pictures
  int32_t is_mirrored = 0;
};

namespace CREMA_ISA {

/// Elements of an array from one index to the next, by channel, row and column.
class PictureSteps {
 public:
  int64_t channel = 0, row = 0, column = 0;
};

/// Element i of y [n,c,h,w], in y's order, is (byte - mean) * scale; below 2^31 of them.
struct PicturesFromBytes {
  const uint8_t* bytes;  // one record after another
  const ByteRecord* records;
  const float* mean;
  float* y;
  float scale;
  Divider count, channels, height, width;  // count: elements of a record
  PictureSteps from, of_mean;
  bool is_nhwc;  // y's order

  CREMA_BOTH void operator()(int64_t i) const {
    const uint32_t n = count.quotient(static_cast<uint32_t>(i));
    uint32_t rest = static_cast<uint32_t>(i) - n * count.divisor(), c, h, w;
    if (is_nhwc) {
      c = channels.remainder(rest);
      rest = channels.quotient(rest);
      w = width.remainder(rest);
      h = width.quotient(rest);
    } else {
      w = width.remainder(rest);
      rest = width.quotient(rest);
      h = height.remainder(rest);
      c = height.quotient(rest);
    }
    const ByteRecord& record = records[n];
    const uint32_t x = record.is_mirrored ? width.divisor() - 1 - w : w;
    const int64_t at = int64_t{n} * count.divisor() + c * from.channel + h * from.row;
    const int64_t mean_at = c * of_mean.channel + (record.top + int64_t{h}) * of_mean.row +
                            (record.left + int64_t{x}) * of_mean.column;
    y[i] = (static_cast<float>(bytes[at + x * from.column]) - mean[mean_at]) * scale;
  }
};

}  // namespace CREMA_ISA
}  // namespace crema
