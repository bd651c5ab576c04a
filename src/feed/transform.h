// The transform of one picture, in Caffe's order: crop, subtract the mean, scale, mirror.
#pragma once

#include <cstdint>
#include <optional>

#include "base/shape.h"
#include "crema.pb.h"
#include "feed/byte_batch.h"
#include "io/blob.h"
#include "io/image.h"

namespace crema {

/// Pixels of one picture: bytes or floats, planes (C,H,W) or interleaved (H,W,C).
struct Pixels {
  int channels = 0, height = 0, width = 0;
  const uint8_t* bytes = nullptr;
  const float* floats = nullptr;  // used when bytes is nullptr
  bool is_interleaved = false;
};

Pixels pixels_of(const Picture& picture);

/// The crop as it is written; 0 x 0 for none.
struct CropSize {
  int64_t height = 0, width = 0;
};
/// crop_size, or crop_h and crop_w. Throws Error for both, and for one of the two alone.
CropSize crop_size_of(const TransformationParameter& param);

/// out = (x - mean) * scale, cropped and perhaps mirrored, as planes. Crop is random in TRAIN and
/// central in TEST; mirror has probability 1/2 in both. The mean file has the size before cropping
/// and is cropped with the picture. Of pictures whose size the transform has changed it may have
/// another size, at least the crop's: then its middle is subtracted.
class Transformer {
 public:
  /// key: of the random draws. Throws Error for fields that contradict each other and for a mean
  /// file that cannot be read.
  Transformer(const TransformationParameter& param, Phase phase, uint64_t key);

  /// How encoded pictures are to be decoded.
  ColorMode color_mode() const;
  /// C,H,W of what apply() writes. Throws Error when crop_size, mean_file or mean_value do not fit
  /// this picture.
  Shape output_shape(const Pixels& pixels) const;
  /// The draws are a function of (key, record). out has the count of output_shape(pixels), which
  /// must have been asked for pictures of this size once.
  void apply(const Pixels& pixels, uint64_t record, float* out) const;

  /// For pictures of bytes like this one: what apply() leaves to do after crop_bytes().
  ByteFormat byte_format(const Pixels& pixels) const;
  /// The cropped bytes in the order of format into place.pixels, and the rest into place.record.
  void crop_bytes(const Pixels& pixels, uint64_t record, const ByteFormat& format,
                  const BytePlace& place) const;

 private:
  struct Window {
    int top = 0, left = 0, height = 0, width = 0;
    bool is_mirrored = false;
  };
  /// Of the mean file: the value above window's corner, and the steps between channels and rows.
  struct MeanWindow {
    const float* corner = nullptr;
    int64_t plane = 0, pitch = 0;
  };
  MeanWindow mean_window(const Pixels& pixels, const Window& window) const;
  Window window_of(const Pixels& pixels, uint64_t record) const;
  void check_mean(const Pixels& pixels, const Shape& out) const;
  float mean_of(int channel) const;

  TransformationParameter param_;
  Phase phase_;
  uint64_t key_;
  CropSize crop_;
  std::optional<HostBlob> mean_;
};

}  // namespace crema
