// NumPy's files: .npy (one array) and .npz (a zip archive of them), as numpy.load reads them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/blob.h"

namespace crema {

/// The bytes of a .npy file: 32-bit floats, row-major.
std::string write_npy(const Shape& shape, const std::vector<float>& values);

/// The array of a .npy file. Floats of 16, 32 and 64 bits and whole numbers of up to 64 bits are
/// taken, little-endian and row-major. Throws Error without the file's name.
HostBlob read_npy(std::string_view bytes);

using NamedBlobs = std::vector<std::pair<std::string, HostBlob>>;

/// Writes a .npz whose arrays are stored without compression. On failure throws Error and path
/// keeps its old content; archives beyond 4 GB are refused.
void write_npz(const std::string& path, const NamedBlobs& arrays);

/// The arrays in the order of the archive, stored or deflated, their names without ".npy". Throws
/// Error "PATH: ...".
NamedBlobs read_npz(const std::string& path);

}  // namespace crema
