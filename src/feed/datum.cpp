// The wire format is read by hand: the generated parser would copy each picture, and would take an
// AnnotatedDatum for an empty Datum with unknown fields.
#include "feed/datum.h"

#include <cstring>

#include "base/error.h"
#include "crema.pb.h"

namespace crema {
namespace {

enum Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
constexpr const char* kBroken = "the record is not a Datum, or a broken one";

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool is_done() const { return rest_.empty(); }

  uint64_t read_varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      require(!rest_.empty(), kBroken);
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    fail(kBroken);
  }
  std::string_view take(uint64_t size) {
    require(size <= rest_.size(), kBroken);
    const std::string_view part = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return part;
  }
  void skip(int wire) {
    switch (wire) {
      case varint:
        read_varint();
        break;
      case fixed64:
        take(8);
        break;
      case bytes:
        take(read_varint());
        break;
      case fixed32:
        take(4);
        break;
      default:
        fail(kBroken);
    }
  }

 private:
  std::string_view rest_;
};

void append_floats(std::string_view packed, std::vector<float>& out) {
  require(packed.size() % sizeof(float) == 0, kBroken);
  const size_t old = out.size();
  out.resize(old + packed.size() / sizeof(float));
  std::memcpy(out.data() + old, packed.data(), packed.size());
}

int wire_type_of(int field) {
  switch (field) {
    case Datum::kDataFieldNumber:
      return bytes;
    case Datum::kFloatDataFieldNumber:
    case Datum::kLabelsFieldNumber:
      return fixed32;
    default:
      return field <= Datum::kEncodedFieldNumber ? varint : -1;
  }
}

void read_field(Reader& reader, int field, int wire, DatumView& out) {
  const int expected = wire_type_of(field);
  if (expected < 0) return reader.skip(wire);
  const bool is_list = field == Datum::kFloatDataFieldNumber || field == Datum::kLabelsFieldNumber;
  const bool is_packed = is_list && wire == bytes;
  require(
      field != Datum::kChannelsFieldNumber || wire != bytes,
      "the record is not a Datum; it looks like an AnnotatedDatum (SSD), which a plain Data layer "
      "cannot read");
  require(field > 0 && (wire == expected || is_packed), kBroken);
  switch (field) {
    case Datum::kChannelsFieldNumber:
      out.channels = static_cast<int>(reader.read_varint());
      break;
    case Datum::kHeightFieldNumber:
      out.height = static_cast<int>(reader.read_varint());
      break;
    case Datum::kWidthFieldNumber:
      out.width = static_cast<int>(reader.read_varint());
      break;
    case Datum::kDataFieldNumber:
      out.data = reader.take(reader.read_varint());
      break;
    case Datum::kLabelFieldNumber:
      out.label = static_cast<int>(reader.read_varint());
      break;
    case Datum::kFloatDataFieldNumber:
      append_floats(reader.take(is_packed ? reader.read_varint() : sizeof(float)), out.floats);
      break;
    case Datum::kLabelsFieldNumber:
      append_floats(reader.take(is_packed ? reader.read_varint() : sizeof(float)), out.labels);
      break;
    default:
      out.is_encoded = reader.read_varint() != 0;
  }
}

}  // namespace

void parse_datum(std::string_view record, DatumView& out) {
  out.channels = out.height = out.width = out.label = 0;
  out.is_encoded = false;
  out.data = {};
  out.floats.clear();
  out.labels.clear();
  Reader reader(record);
  while (!reader.is_done()) {
    const uint64_t tag = reader.read_varint();
    require(tag >> 3 <= 0x1fffffff, kBroken);
    read_field(reader, static_cast<int>(tag >> 3), static_cast<int>(tag & 7), out);
  }
}

std::string write_datum(const DatumFields& fields, std::string_view data) {
  Datum datum;
  datum.set_channels(fields.channels);
  datum.set_height(fields.height);
  datum.set_width(fields.width);
  datum.set_data(data.data(), data.size());
  datum.set_label(fields.label);
  for (const float label : fields.labels) datum.add_labels(label);
  if (fields.is_encoded) datum.set_encoded(true);
  return datum.SerializeAsString();
}

}  // namespace crema
