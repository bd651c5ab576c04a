// The inner loop of the transform: one channel of one picture.
#pragma once

#include <cstdint>

namespace crema {

/// height x width values, one every `step` elements, rows `pitch` elements apart.
struct RowBlock {
  const uint8_t* bytes = nullptr;
  const float* floats = nullptr;  // used when bytes is nullptr
  int64_t step = 1, pitch = 0;
  const float* mean_row =
      nullptr;  // a mean for each value, rows mean_pitch apart; nullptr: `mean` for all
  int64_t mean_pitch = 0;
  float mean = 0, scale = 1;
  int height = 0, width = 0;
  bool is_mirrored = false;
};

/// out[y][x] = (value - mean) * scale, x counted from the right when mirrored. The same bits on
/// every processor.
void transform_rows(const RowBlock& block, float* out);

}  // namespace crema
