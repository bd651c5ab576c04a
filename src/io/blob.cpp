// BlobProto and HostBlob. A blob whose values do not fit its shape is refused: a reader that took
// them for zeros would load a dead layer without a word.
#include "io/blob.h"

#include <bit>
#include <cstring>

#include "base/error.h"

namespace crema {
namespace {

Shape shape_of(const BlobProto& proto) {
  const bool has_legacy =
      proto.has_num() || proto.has_channels() || proto.has_height() || proto.has_width();
  if (has_legacy && proto.shape().dim_size() == 0) {
    return {proto.num(), proto.channels(), proto.height(), proto.width()};
  }
  Shape shape;
  for (int64_t dim : proto.shape().dim()) shape.push_back(dim);
  return shape;
}

// IEEE half precision.
float half_to_float(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 31u, fraction = half & 1023u;
  if (exponent == 0) {
    const float tiny = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -tiny : tiny;
  }
  const uint32_t bits = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (bits << 23) | (fraction << 13));
}

template <class Stored, class Convert>
std::vector<float> convert_raw(const std::string& bytes, const Convert& convert) {
  require(bytes.size() % sizeof(Stored) == 0, "holds ", bytes.size(),
          " bytes of values, no multiple of ", sizeof(Stored));
  std::vector<float> values(bytes.size() / sizeof(Stored));
  for (size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = convert(stored);
  }
  return values;
}

std::vector<float> read_raw(const std::string& bytes, Type type) {
  switch (type) {
    case FLOAT:
      return convert_raw<float>(bytes, [](float v) { return v; });
    case FLOAT16:
      return convert_raw<uint16_t>(bytes, half_to_float);
    case DOUBLE:
      return convert_raw<double>(bytes, [](double v) { return static_cast<float>(v); });
    default:
      fail("holds values of type ", Type_Name(type), ", a floating-point type is needed");
  }
}

template <class Floats, class Doubles>
std::vector<float> read_values(const Floats& floats, const Doubles& doubles) {
  if (!doubles.empty()) return {doubles.begin(), doubles.end()};
  return {floats.begin(), floats.end()};
}

}  // namespace

HostBlob from_proto(const BlobProto& proto) {
  HostBlob blob;
  blob.shape = shape_of(proto);
  int64_t count = 1;
  for (int64_t dim : blob.shape) {
    require(dim >= 0, "has a negative size in its shape ", blob.shape);
    require(dim == 0 || count <= kMaxBlobCount / dim, "has the shape ", blob.shape, ", more than ",
            kMaxBlobCount, " values");
    count *= dim;
  }
  blob.data = read_values(proto.data(), proto.double_data());
  blob.diff = read_values(proto.diff(), proto.double_diff());
  if (blob.data.empty() && proto.has_raw_data()) {
    blob.data = read_raw(proto.raw_data(), proto.raw_data_type());
  }
  if (blob.diff.empty() && proto.has_raw_diff()) {
    blob.diff = read_raw(proto.raw_diff(), proto.raw_diff_type());
  }
  const size_t needed = static_cast<size_t>(count);
  require(blob.data.size() == needed, "has the shape ", blob.shape, " (", count,
          " values) but holds ", blob.data.size());
  require(blob.diff.empty() || blob.diff.size() == needed, "has the shape ", blob.shape, " (",
          count, " values) but holds ", blob.diff.size(), " gradient values");
  return blob;
}

BlobProto to_proto(const HostBlob& blob, bool with_diff) {
  BlobProto proto;
  for (int64_t dim : blob.shape) proto.mutable_shape()->add_dim(dim);
  proto.mutable_data()->Assign(blob.data.begin(), blob.data.end());
  if (with_diff) proto.mutable_diff()->Assign(blob.diff.begin(), blob.diff.end());
  return proto;
}

}  // namespace crema
