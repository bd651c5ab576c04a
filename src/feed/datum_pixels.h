// The picture of a Datum.
#pragma once

#include "feed/datum.h"
#include "feed/transform.h"

namespace crema {

/// A view of datum's values, or of `decoded` where it is encoded: then the size is the decoded
/// picture's, whatever the fields say. Throws Error when the record holds no picture or not as many
/// values as its size has.
Pixels pixels_of_datum(const DatumView& datum, ColorMode mode, Picture& decoded);

}  // namespace crema
