// What happens to the boxes of a picture that is cropped, and how SSD draws its crops (Liu et al.,
// "SSD", 2016, section 2.2, data augmentation).
#pragma once

#include <vector>

#include "base/box.h"
#include "base/philox.h"
#include "crema.pb.h"

namespace crema {

/// One annotation of a picture.
struct LabeledBox {
  int label = 0, instance = 0;
  Box box;
  bool is_difficult = false;
};

/// Uniform in [low, high].
float draw_between(RandomStream& random, float low, float high);

/// Throws Error for a sampler whose ranges are empty or beyond what is possible.
void check_sampler(const BatchSampler& sampler);

/// A crop of the picture, drawn from those that the samplers found acceptable; the whole picture
/// where none was found.
Box draw_crop(const std::vector<BatchSampler>& samplers, const std::vector<LabeledBox>& boxes,
              RandomStream& random);

/// The boxes as fractions of the crop, cut to it; those go that do not meet the constraint (if
/// there is one) or have no part in it. The crop may reach beyond the picture.
void move_to_crop(const Box& crop, const EmitConstraint* constraint,
                  std::vector<LabeledBox>* boxes);

/// Left and right exchanged.
void mirror_boxes(std::vector<LabeledBox>* boxes);

}  // namespace crema
