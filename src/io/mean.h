// Mean files (.binaryproto): one BlobProto, 1 x C x H x W, channels in BGR order, values 0 to 255.
#pragma once

#include <string>

#include "io/blob.h"

namespace crema {

/// Throws Error "PATH: ..." for a file that is missing, empty, truncated, of another kind or
/// without values.
HostBlob read_mean(const std::string& path);

/// On failure throws Error and path keeps its old content.
void write_mean(const std::string& path, const HostBlob& mean);

}  // namespace crema
