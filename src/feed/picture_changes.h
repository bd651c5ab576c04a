// What training for detection does to a picture, in memory: colours, crops, larger canvases,
// mirrors. Rows of interleaved bytes, blue, green, red.
#pragma once

#include <vector>

#include "base/box.h"
#include "base/philox.h"
#include "crema.pb.h"
#include "io/image.h"

namespace crema {

/// Brightness (+ delta), contrast (* factor), saturation (* factor in HSV), hue (+ delta of 180 in
/// HSV), each with its probability, and perhaps another order of the channels (Howard 2013, as SSD
/// has it). Pictures without three channels get brightness and contrast only.
void distort(const DistortionParameter& param, RandomStream& random, Picture* picture);

/// Throws Error for a ratio below 1 and a prob that is none.
void check_expansion(const ExpansionParameter& param);

/// The picture in a larger one, filled with the mean: in `random` place and by a ratio up to
/// max_expand_ratio. Returns the canvas as a crop of the picture (beyond its borders).
Box expand(const ExpansionParameter& param, const std::vector<float>& mean, RandomStream& random,
           Picture* picture);

/// The part that begins at (left, top); it must lie within the picture.
void cut(int left, int top, int width, int height, Picture* picture);

/// The part of the picture, corners rounded down to whole pixels; at least one pixel.
void crop(const Box& part, Picture* picture);

/// Turned about its middle, counter-clockwise, in its own size: bilinear, what lies beyond the
/// border is as the border. The degrees may be negative.
void rotate(float degrees, Picture* picture);

/// Left and right exchanged.
void mirror(Picture* picture);

}  // namespace crema
