// Datum: one database record, a picture as bytes, floats or an encoded file, with its label.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

/// A parsed Datum; data is a view into the record.
struct DatumView {
  int channels = 0, height = 0, width = 0, label = 0;
  bool is_encoded = false;
  std::string_view data;
  std::vector<float> floats;  // keeps its storage between records
  std::vector<float> labels;  // empty where `label` is the only one
};

/// Reads a serialized Datum without copying its bytes; unknown fields are skipped. Throws Error
/// when the record is no Datum (known fields of another type, such as an SSD AnnotatedDatum has) or
/// broken.
void parse_datum(std::string_view record, DatumView& out);

/// A serialized Datum with all three sizes.
struct DatumFields {
  int channels = 0, height = 0, width = 0, label = 0;
  bool is_encoded = false;
  std::vector<float> labels{};  // several, or other than whole ones; label is the first then
};
std::string write_datum(const DatumFields& fields, std::string_view data);

}  // namespace crema
