// Everything that transform_param does to a decoded picture before it is cropped: the fields of SSD
// and NVCaffe, and ours.
#pragma once

#include "crema.pb.h"
#include "feed/transform.h"

namespace crema {

/// Whether Augmentation changes pictures.
bool changes_pictures(const TransformationParameter& param);

/// Changes in this order: distort_param, expand_param, resize_param, the sizes that are drawn
/// (picture_resizing.h), max_rotation, noise_param. In both phases, as mirror.
class Augmentation {
 public:
  /// key: of the random draws. Throws Error for fields that are out of range.
  Augmentation(const TransformationParameter& param, uint64_t key);

  /// pixels as they are where nothing is to be changed; else `storage` (which pixels may view)
  /// holds the changed picture. The draws are a function of (key, record). Throws Error for a
  /// picture of floats.
  Pixels changed(const Pixels& pixels, uint64_t record, Picture& storage) const;

 private:
  TransformationParameter param_;
  uint64_t key_;
  bool is_empty_;
};

/// transform_param as it is used where nothing is drawn: without mirrors, colours, canvases,
/// rotations, stretches and noise; a length that is drawn becomes the middle of its range, and
/// resize_param always applies, in its first interp_mode.
TransformationParameter without_chance(const TransformationParameter& param);

/// The picture that pixels view. Throws Error where they are floats.
Picture picture_of(const Pixels& pixels);

}  // namespace crema
