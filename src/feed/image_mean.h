// The mean picture of a database.
#pragma once

#include <string>

#include "io/blob.h"

namespace crema {

/// The mean of all records, 1 x C x H x W, summed in double. Throws Error naming the record that is
/// broken or of another size than the first.
HostBlob image_mean(const std::string& database, int threads);

}  // namespace crema
