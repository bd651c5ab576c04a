// The seven fillers of Caffe, also under the names that NVCaffe gave them. Each draws value after
// value from one stream, so a parameter's values depend on the stream's key and the shape alone.
#include "layers/filler.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace crema {
namespace {

/// The n of xavier and msra.
// BVLC: "fan in" is count / shape[0] whatever the layer means by its axes, so it is not the true
// one for Deconvolution and a transposed InnerProduct. Trained nets depend on it.
double fan(const FillerParameter& filler, const Shape& shape) {
  const auto count = static_cast<double>(shape.count());
  const double in = shape.axes() > 0 ? count / static_cast<double>(shape[0]) : count;
  const double out = shape.axes() > 1 ? count / static_cast<double>(shape[1]) : count;
  switch (filler.variance_norm()) {
    case FillerParameter::FAN_OUT:
      return out;
    case FillerParameter::AVERAGE:
      return (in + out) / 2;
    default:
      return in;
  }
}

/// The type without the "static" that NVCaffe appends to ask for numbers that are drawn once: a
/// parameter's always are.
std::string plain_type(const std::string& type) {
  constexpr std::string_view suffix = "static";
  if (!type.ends_with(suffix)) return type;
  const std::string plain = type.substr(0, type.size() - suffix.size());
  return plain == "constant" ? type : plain;
}

const std::vector<std::string>& filler_types() {
  static const std::vector<std::string> types = {
      "constant", "uniform", "gaussian", "positive_unitball", "xavier", "msra", "bilinear"};
  return types;
}

FillerDraw gaussian(const FillerParameter& filler, const Shape& shape) {
  require(filler.std() >= 0, "filler gaussian: std must be at least 0, not ", filler.std());
  require(filler.sparse() >= -1, "filler gaussian: sparse must be at least 0 (-1: off), not ",
          filler.sparse());
  // BVLC: the probability divides by the number of outputs where the name suggests inputs.
  const double keep =
      filler.sparse() < 0 ? 1 : filler.sparse() / static_cast<double>(shape.dim_or_one(0));
  return {FillerKind::gaussian, filler.mean(), filler.std(), keep};
}

FillerDraw bilinear(const Shape& shape) {
  require(shape.axes() == 4, "filler bilinear: needs a blob of 4 axes, not of shape ", shape);
  require(shape[2] == shape[3], "filler bilinear: needs a square kernel, not ", shape[2], " x ",
          shape[3]);
  const double f = std::ceil(static_cast<double>(shape[3]) / 2);
  return {FillerKind::bilinear, f, static_cast<double>(shape[3] - 1) / (2 * f)};
}

void fill_unitball(const Shape& shape, RandomStream& random, std::span<float> values) {
  const size_t row = values.size() / static_cast<size_t>(shape.dim_or_one(0));
  for (size_t begin = 0; begin < values.size(); begin += row) {
    double sum = 0;
    for (float& value : values.subspan(begin, row)) {
      value = static_cast<float>(random.uniform());
      sum += value;
    }
    for (float& value : values.subspan(begin, row)) value = static_cast<float>(value / sum);
  }
}

void fill_bilinear(const FillerDraw& draw, int64_t k, std::span<float> values) {
  const auto weight = [&](int64_t i) {
    return 1 - std::abs(static_cast<double>(i) / draw.a - draw.b);
  };
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
    values[static_cast<size_t>(i)] = static_cast<float>(weight(i % k) * weight(i / k % k));
  }
}

}  // namespace

bool is_filler_type(const std::string& type) {
  const std::vector<std::string>& types = filler_types();
  return std::find(types.begin(), types.end(), plain_type(type)) != types.end();
}

FillerDraw filler_draw(const FillerParameter& filler, const Shape& shape) {
  const std::string type = plain_type(filler.type());
  if (type == "constant") return {FillerKind::constant, filler.value()};
  if (type == "gaussian") return gaussian(filler, shape);
  if (type == "positive_unitball") return {FillerKind::unitball};
  if (type == "bilinear") return bilinear(shape);
  if (type == "msra") return {FillerKind::gaussian, 0, std::sqrt(2 / fan(filler, shape))};
  if (type == "xavier") {
    const double a = std::sqrt(3 / fan(filler, shape));
    return {FillerKind::uniform, -a, a};
  }
  require(type == "uniform", "unknown filler type \"", filler.type(), '"',
          did_you_mean(filler.type(), filler_types()));
  require(filler.min() <= filler.max(), "filler uniform: min ", filler.min(),
          " must not exceed max ", filler.max());
  return {FillerKind::uniform, filler.min(), filler.max()};
}

void fill_values(const FillerParameter& filler, const Shape& shape, RandomStream& random,
                 std::span<float> values) {
  const FillerDraw draw = filler_draw(filler, shape);
  switch (draw.kind) {
    case FillerKind::constant:
      std::fill(values.begin(), values.end(), static_cast<float>(draw.a));
      break;
    case FillerKind::uniform:
      for (float& value : values) {
        value = static_cast<float>(draw.a + (draw.b - draw.a) * random.uniform());
      }
      break;
    case FillerKind::gaussian:
      for (float& value : values) value = static_cast<float>(draw.a + draw.b * random.gaussian());
      if (draw.keep >= 1) break;
      for (float& value : values) {
        if (random.uniform() >= draw.keep) value = 0;
      }
      break;
    case FillerKind::unitball:
      fill_unitball(shape, random, values);
      break;
    case FillerKind::bilinear:
      fill_bilinear(draw, shape[3], values);
      break;
  }
}

}  // namespace crema
