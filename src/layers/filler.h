// Fillers: how a parameter is initialised.
#pragma once

#include <span>
#include <string>

#include "base/philox.h"
#include "base/shape.h"
#include "crema.pb.h"

namespace crema {

/// Fills values (shape.count() of them) as the filler says; draws come from random. Types:
/// constant, uniform, gaussian (with sparse), positive_unitball, xavier, msra, bilinear. Throws
/// Error on an unknown type (nearest name) or a filler that does not fit the shape.
void fill_values(const FillerParameter& filler, const Shape& shape, RandomStream& random,
                 std::span<float> values);

/// Whether fill_values knows the type, NVCaffe's names included.
bool is_filler_type(const std::string& type);

/// A filler as numbers, for draws made on a device (DummyData).
enum class FillerKind : uint8_t { constant, uniform, gaussian, unitball, bilinear };
struct FillerDraw {
  FillerKind kind = FillerKind::constant;
  double a = 0, b = 0;  // constant: value; uniform: low, high; gaussian: mean, std; bilinear: f, c
  double keep = 1;      // gaussian: the probability that a value is not replaced by 0
};
/// What fill_values would draw from. Throws Error as it does.
FillerDraw filler_draw(const FillerParameter& filler, const Shape& shape);

}  // namespace crema
