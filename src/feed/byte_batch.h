// A batch of pictures as bytes: cropped on the host, the rest of their transform (mean, scale,
// mirror) is left to the device that they are copied to.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/shape.h"
#include "ops/kernels/byte_pictures.h"
#include "ops/ops.h"

namespace crema {

/// What the pictures of a feed have in common.
struct ByteFormat {
  Shape record;                 // C,H,W after cropping
  bool is_interleaved = false;  // bytes lie as H,W,C, else as C,H,W
  float scale = 1;
  /// One value for each channel where mean_width is 0; else a whole picture's, C, mean_height x
  /// mean_width: crops say where they lie in it.
  std::vector<float> mean;
  int64_t mean_height = 0, mean_width = 0;
};

/// Memory of a batch: what load_bytes() fills for one record.
struct BytePlace {
  uint8_t* pixels = nullptr;
  ByteRecord* record = nullptr;
  float* labels = nullptr;
};

struct ByteBatch {
  uint64_t position = 0;  // of its first record: names the batch
  /// Of all records; pixels is nullptr for a batch in which some picture has no bytes: it comes
  /// ready made in `floats` then.
  const uint8_t* pixels = nullptr;
  const ByteRecord* records = nullptr;
  const float* labels = nullptr;  // nullptr where there are none
  const float* floats = nullptr;
};

/// Memory that the device copies from fast.
using Allocate = std::function<Buffer(size_t bytes)>;

}  // namespace crema
