// Encoded records are often written with sizes of 0, so the decoded picture's size counts.
#include "feed/datum_pixels.h"

#include "base/error.h"

namespace crema {

Pixels pixels_of_datum(const DatumView& datum, ColorMode mode, Picture& decoded) {
  if (datum.is_encoded) {
    decode(datum.data, mode, decoded);
    return pixels_of(decoded);
  }
  require(datum.channels > 0 && datum.height > 0 && datum.width > 0,
          "the record holds no picture (its size is ", datum.channels, " x ", datum.height, " x ",
          datum.width, ")");
  const uint64_t have = datum.data.empty() ? datum.floats.size() : datum.data.size();
  const unsigned __int128 need =
      static_cast<unsigned __int128>(datum.channels) * datum.height * datum.width;
  require(have == need, "the record holds ", have, " values, but its size is ", datum.channels,
          " x ", datum.height, " x ", datum.width);
  const auto* bytes = reinterpret_cast<const uint8_t*>(datum.data.data());
  return {datum.channels,      datum.height, datum.width, datum.data.empty() ? nullptr : bytes,
          datum.floats.data(), false};
}

}  // namespace crema
