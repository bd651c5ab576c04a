// What tests of changed pictures share: pictures whose bytes are counted, and their changes.
#pragma once

#include <vector>

#include "feed/augmentation.h"
#include "feed/datum_pixels.h"
#include "feed_testing.h"

namespace crema::testing {

using Bytes = std::vector<uint8_t>;

inline TransformationParameter transform_of(const std::string& text) {
  TransformationParameter param;
  parse_text(text, "test", &param);
  return param;
}

/// One byte after another goes up by 7.
inline Picture counted(int height, int width, int channels = 1) {
  Picture picture{height, width, channels, {}};
  for (int i = 0; i < height * width * channels; ++i) {
    picture.pixels.push_back(static_cast<uint8_t>(i * 7 % 256));
  }
  return picture;
}

/// The picture as record `record` sees it.
inline Picture augmented(const std::string& fields, const Picture& picture, uint64_t record = 0) {
  Picture storage = picture;
  Augmentation(transform_of(fields), 5).changed(pixels_of(storage), record, storage);
  return storage;
}

inline Picture noisy(const std::string& fields, const Picture& picture, uint64_t record = 0) {
  return augmented("noise_param { " + fields + " }", picture, record);
}

}  // namespace crema::testing
