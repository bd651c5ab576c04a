// Fillers: how a parameter is initialised.
#pragma once

#include <span>

#include "base/philox.h"
#include "base/shape.h"
#include "crema.pb.h"

namespace crema {

/// Fills values (shape.count() of them) as the filler says; draws come from random. Types: constant, uniform, gaussian
/// (with sparse), positive_unitball, xavier, msra, bilinear. Throws Error on an unknown type (nearest name) or a
/// filler that does not fit the shape.
void fill_values(const FillerParameter& filler, const Shape& shape, RandomStream& random, std::span<float> values);

}  // namespace crema
